import { readFile } from 'node:fs/promises';
import type { TextTokenizer } from '@bufferwise/hybrid-engine';
import { CliError } from '../cli-error.ts';

/** Reads prompts, one JSON object a line: `{"text": …}` or `{"ids": […]}`. Empty lines are skipped. Returns token ids. */
export async function readPrompts(path: string, tokenizer: TextTokenizer): Promise<Uint32Array[]> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    throw new CliError(
      `cannot read ${path}: ${(cause as NodeJS.ErrnoException).code ?? cause}. --prompts takes a file with one JSON object a line`,
    );
  }
  const prompts: Uint32Array[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() !== '') prompts.push(readPrompt(line, `${path}:${index + 1}`, tokenizer));
  }
  if (prompts.length === 0) throw new CliError(`${path} holds no prompt; write {"text": "…"} or {"ids": […]} on each line`);
  return prompts;
}

function readPrompt(line: string, where: string, tokenizer: TextTokenizer): Uint32Array {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    throw new CliError(`${where} is not JSON; write {"text": "…"} or {"ids": […]}`);
  }
  const { text, ids, ...rest } =
    typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? (parsed as Record<string, unknown>) : {};
  const unknown = Object.keys(rest);
  if (unknown.length > 0)
    throw new CliError(`${where}: unknown field ${JSON.stringify(unknown[0])}; a prompt has "text" or "ids"`);
  if ((text === undefined) === (ids === undefined)) throw new CliError(`${where}: a prompt has either "text" or "ids"`);
  if (text !== undefined) {
    if (typeof text !== 'string' || text === '') throw new CliError(`${where}: "text" must be a string that is not empty`);
    return tokenizer.encode(text);
  }
  if (!Array.isArray(ids) || ids.length === 0 || !ids.every((id) => Number.isInteger(id) && id >= 0 && id <= 0xffffffff)) {
    throw new CliError(`${where}: "ids" must be a list of token ids, not empty`);
  }
  return Uint32Array.from(ids as number[]);
}
