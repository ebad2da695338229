import { libraryConfig } from '@bufferwise-internal/tsconfig/tsup';

export default libraryConfig({ index: 'src/index.ts' }, { types: ['@webgpu/types', '@bufferwise-internal/tsconfig/wgsl'] });
