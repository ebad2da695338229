import { sourceModule } from '../../../../scripts/run/source-module.mjs';

/** The command as one module of its source: it starts as the built one does, and needs no build. Returns its path. */
export function sourceCommand(): Promise<string> {
  return sourceModule('apps/cli', 'bufferwise', "import './src/main.ts';");
}
