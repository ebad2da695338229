import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { presetLayers } from '@bufferwise/core-policy';
import { CliError } from '../cli-error.ts';
import { EXAMPLE_MODELS } from '../plan/example-models.ts';

/** What a model's `config.json` says, and what people call the model. */
export interface NamedConfig {
  readonly name: string;
  readonly config: unknown;
}

/** Names that `readModelConfig` knows without a file. */
export const EXAMPLE_NAMES: readonly string[] = Object.keys(EXAMPLE_MODELS);

/**
 * Finds a model's config: a file, a folder with a `config.json`, the name of a built-in example, or that of a family, which stands for its
 * first example.
 *
 * @throws {CliError} when it is none of them, or no JSON
 */
export async function readModelConfig(model: string): Promise<NamedConfig> {
  const path = await configPath(model);
  if (path !== undefined) return { name: model, config: parse(path, await readFile(path, 'utf8')) };
  const wanted = model.toLowerCase();
  const name = EXAMPLE_NAMES.find((each) => each === wanted) ?? EXAMPLE_NAMES.find((each) => familyOf(each) === wanted);
  if (name !== undefined) return { name, config: EXAMPLE_MODELS[name] };
  throw new CliError(
    `${JSON.stringify(model)} is neither a config.json nor a known model; known are ${EXAMPLE_NAMES.join(', ')}, and the families of these`,
  );
}

async function configPath(model: string): Promise<string | undefined> {
  const found = await stat(model).catch(() => undefined);
  if (found === undefined) return undefined;
  if (!found.isDirectory()) return model;
  const inside = join(model, 'config.json');
  if (await stat(inside).catch(() => undefined)) return inside;
  throw new CliError(`the folder ${model} has no config.json`);
}

function parse(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CliError(`${path} is not JSON: ${(cause as Error).message}`);
  }
}

function familyOf(name: string): string {
  return presetLayers(EXAMPLE_MODELS[name], { tokensPerBlock: 16 }).family;
}
