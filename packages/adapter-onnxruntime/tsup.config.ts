import { libraryConfig } from '@bufferwise-internal/tsconfig/tsup';

export default libraryConfig();
