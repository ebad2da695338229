import { commandConfig } from '@bufferwise-internal/tsconfig/tsup';

export default commandConfig({ bufferwise: 'src/main.ts' });
