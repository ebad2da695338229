import { libraryConfig } from '@bufferwise-internal/tsconfig/tsup';

export default libraryConfig(
  {
    index: 'src/index.ts',
    'encrypted-store': 'src/encrypted/index.ts',
    'file-store': 'src/file/index.ts',
    'browser-store': 'src/browser/index.ts',
    'indexeddb-store': 'src/indexeddb/index.ts',
    'opfs-store': 'src/opfs/index.ts',
    'opfs-worker': 'src/opfs/worker.ts',
    'prefix-file': 'src/prefix-file/index.ts',
    'redis-store': 'src/redis/index.ts',
    's3-store': 'src/s3/index.ts',
    'unstorage-store': 'src/unstorage/index.ts',
  },
  { types: ['node'] },
);
