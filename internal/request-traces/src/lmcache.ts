import type { TraceLine } from './read-lines.ts';
import type { TraceRequest } from './trace-request.ts';

/** Real token ids; a prompt is what it shares with an earlier line (`prefix_of`, `prefix_length`) and what follows (`input`). */
export function lmcacheRequests(lines: readonly TraceLine[]): TraceRequest[] {
  const prompts: Uint32Array[] = [];
  return lines.flatMap((line) => {
    const input = line.ids('input');
    const output = line.has('output') ? line.ids('output') : [];
    const shared = sharedPart(line, prompts);
    const prompt = new Uint32Array(shared.length + input.length);
    prompt.set(shared);
    prompt.set(input, shared.length);
    prompts.push(prompt);
    // Some lines are empty in the source.
    if (prompt.length === 0) return [];
    return [
      {
        promptLength: prompt.length,
        outputLength: Math.max(1, output.length),
        prompt: () => prompt,
        outputToken: (index: number) => output[index] ?? 0,
      },
    ];
  });
}

function sharedPart(line: TraceLine, earlier: readonly Uint32Array[]): Uint32Array {
  if (!line.has('prefix_length') || line.count('prefix_length') === 0) return new Uint32Array(0);
  const from = earlier[line.count('prefix_of')];
  const length = line.count('prefix_length');
  if (from === undefined || from.length < length) throw line.fault('prefix_of', `names no earlier line with ${length} tokens`);
  return from.subarray(0, length);
}
