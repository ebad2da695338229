import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type HybridModel, readModel } from '@bufferwise/hybrid-engine';
import { CliError } from '../cli-error.ts';

/** The demo model that comes with the repository, seen from the built command. */
export const DEMO_MODEL_FOLDER = fileURLToPath(new URL('../../../models/whaler-1m/', import.meta.url));

/** Reads the files of a model's folder. Throws {CliError} when one is not there, {ModelError} when one is not sound. */
export async function readModelFolder(folder: string): Promise<HybridModel> {
  const [config, tokenizer, weights] = await Promise.all(
    ['config.json', 'tokenizer.json', 'model.safetensors'].map(async (name) => {
      const path = join(folder, name);
      try {
        return new Uint8Array(await readFile(path));
      } catch (cause) {
        throw new CliError(
          `cannot read ${path}: ${(cause as NodeJS.ErrnoException).code ?? cause}. --model takes a folder with config.json, tokenizer.json and model.safetensors`,
        );
      }
    }),
  );
  return readModel({ config, tokenizer, weights });
}
