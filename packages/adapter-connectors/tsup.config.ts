import { libraryConfig } from '@bufferwise-internal/tsconfig/tsup';

export default libraryConfig(
  {
    index: 'src/index.ts',
    'encrypted-store': 'src/encrypted/index.ts',
    'file-store': 'src/file/index.ts',
    'prefix-file': 'src/prefix-file/index.ts',
    'redis-store': 'src/redis/index.ts',
    's3-store': 'src/s3/index.ts',
    'unstorage-store': 'src/unstorage/index.ts',
  },
  { types: ['node'] },
);
