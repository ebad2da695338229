import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type EngineModel, type HybridModel, readGgufModel, readModel } from '@bufferwise/hybrid-engine';
import { CliError } from '../cli-error.ts';

/** The demo model, which is built into the folder of the command. */
export const DEMO_MODEL_FOLDER = fileURLToPath(new URL('./whaler-1m/', import.meta.url));

/**
 * Reads a model from a GGUF file, or from a folder as the demo model's.
 *
 * @throws {CliError} when a file is not there; {ModelError} when one is not sound
 */
export async function readEngineModel(path: string): Promise<EngineModel> {
  const isFile = await stat(path).then(
    (found) => found.isFile(),
    () => path.endsWith('.gguf'),
  );
  return isFile ? readGgufModel(await readModelFile(path)) : readModelFolder(path);
}

/** Reads the files of a model's folder. Throws {CliError} when one is not there, {ModelError} when one is not sound. */
export async function readModelFolder(folder: string): Promise<HybridModel> {
  const [config, tokenizer, weights] = await Promise.all(
    ['config.json', 'tokenizer.json', 'model.safetensors'].map((name) => readModelFile(join(folder, name))),
  );
  return readModel({ config, tokenizer, weights });
}

async function readModelFile(path: string): Promise<Uint8Array> {
  try {
    return new Uint8Array(await readFile(path));
  } catch (cause) {
    const remedy = path.startsWith(DEMO_MODEL_FOLDER)
      ? 'The demo model is not beside the command: install bufferwise again, or name a model of yours'
      : '--model takes a GGUF file, or a folder with config.json, tokenizer.json and model.safetensors';
    throw new CliError(`cannot read ${path}: ${(cause as NodeJS.ErrnoException).code ?? cause}. ${remedy}`);
  }
}
