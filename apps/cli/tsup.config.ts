import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { commandConfig } from '@bufferwise-internal/tsconfig/tsup';

/** What a model's folder must have; how the demo model was made stays in the repository. */
const MODEL_FILES = ['config.json', 'tokenizer.json', 'model.safetensors'];

/** The demo model travels with the command, so that it answers wherever it is installed. */
async function copyDemoModel(): Promise<void> {
  const from = join(import.meta.dirname, '../../models/whaler-1m');
  const to = join(import.meta.dirname, 'dist/whaler-1m');
  await mkdir(to, { recursive: true });
  for (const name of MODEL_FILES) await cp(join(from, name), join(to, name));
}

export default { ...commandConfig({ bufferwise: 'src/main.ts' }), onSuccess: copyDemoModel };
