import { libraryConfig } from '@bufferwise-internal/tsconfig/tsup';

export default libraryConfig({
  index: 'src/index.ts',
  memory: 'src/memory/index.ts',
  'conformance/connector': 'src/conformance/connector/index.ts',
  'conformance/consumer': 'src/conformance/consumer/index.ts',
  'conformance/page-store': 'src/conformance/page-store/index.ts',
  'conformance/transport': 'src/conformance/transport/index.ts',
});
