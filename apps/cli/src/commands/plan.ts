import { basename } from 'node:path';
import { type CacheDtype, type ModelPreset, type PresetOptions, presetLayers } from '@bufferwise/core-policy';
import type { TraceRequest } from '@bufferwise-internal/request-traces';
import { adviceText } from '../advise/advice-text.ts';
import { type Advice, makeAdvice } from '../advise/make-advice.ts';
import type { AdviceOptions } from '../advise/trials.ts';
import { UsageError } from '../cli-error.ts';
import { defineCommand } from '../command/command.ts';
import { byteSize, wholeNumber, wholeNumbers } from '../input/arguments.ts';
import { EXAMPLE_NAMES, type NamedConfig, readModelConfig } from '../input/model-config.ts';
import { writeOutput } from '../input/output-file.ts';
import { MANY, MAX_PROMPT, readTraceRequests } from '../input/trace-file.ts';
import { makePlan } from '../plan/make-plan.ts';
import { planPicture } from '../plan/plan-picture.ts';
import { planText } from '../plan/plan-text.ts';
import { progressBar } from '../terminal/progress-bar.ts';
import type { Terminal } from '../terminal/terminal.ts';

const DTYPES: CacheDtype[] = ['f32', 'f16', 'bf16', 'f8', 'i8'];
const MAX_TOKENS = 2 ** 27;

/** Says what a cache for a model comes to, before anything runs. */
export const plan = defineCommand({
  name: 'plan',
  summary: 'What a cache for a model takes: groups, bytes a token, requests that fit, what split policies buy',
  args: {
    model: {
      type: 'positional',
      description: 'A config.json of Hugging Face, a folder with one, or the name of a known model',
      required: true,
    },
    memory: { type: 'string', description: 'Device memory for all pages', valueHint: 'SIZE', default: '8GiB' },
    'tokens-per-block': { type: 'string', description: 'Tokens in a block', valueHint: 'N', default: '32' },
    variant: {
      type: 'enum',
      description: 'Every buffer required, or what is cheap to have again not',
      options: ['whole', 'split'],
      default: 'whole',
    },
    'kv-dtype': { type: 'enum', description: 'How keys and values are stored', options: DTYPES, default: 'f16' },
    'state-dtype': { type: 'enum', description: 'How recurrent state is stored', options: DTYPES, default: 'f32' },
    'replay-tokens': {
      type: 'string',
      description: 'Tokens of a replay ring beside recurrent state; else 16 in split, 0 in whole',
      valueHint: 'N',
    },
    lengths: { type: 'string', description: 'Lengths of requests in tokens', valueHint: 'N,N,…', default: '1024,8192,65536' },
    typical: { type: 'string', description: 'Length that memory is shared out for; else the middle one', valueHint: 'N' },
    'prefill-chunk': { type: 'string', description: 'Tokens of a prefill step, for scratch', valueHint: 'N', default: '2048' },
    scratch: { type: 'boolean', description: 'Let blocks that leave a window within a step share slots', default: false },
    advise: {
      type: 'string',
      description: 'Serve a trace with each choice of policies instead, and say which is best; --variant split has replay rings',
      valueHint: 'TRACE',
    },
    requests: { type: 'string', description: 'With --advise: requests of the trace to serve; else all', valueHint: 'N' },
    json: { type: 'boolean', description: 'Print one JSON object', default: false },
    svg: { type: 'string', description: 'Draw it into a file as well', valueHint: 'FILE' },
  },
  operandValues: { model: EXAMPLE_NAMES },
  examples: [
    { what: 'A known model by name', line: 'bufferwise plan gemma-3-4b --memory 8GiB' },
    {
      what: 'Your own file, with what split policies free, and a picture',
      line: 'bufferwise plan ./config.json --variant split --svg plan.svg',
    },
    {
      what: 'How many chats of 32k fit in 24 GiB with 8-bit keys',
      line: 'bufferwise plan llama-3.1-8b --memory 24GiB --kv-dtype i8 --lengths 32768 --json',
    },
    {
      what: 'Which policies suit your load best, measured by serving it with each choice',
      line: 'bufferwise plan gemma-3-4b --memory 8GiB --advise trace.jsonl.gz',
    },
  ],
  async run(given, terminal) {
    const tokens = (name: string, text: string) => wholeNumber(name, text, { min: 1, max: MAX_TOKENS });
    const lengths = wholeNumbers('lengths', given.lengths, { min: 1, max: MAX_TOKENS });
    const replay = given['replay-tokens'];
    const count = given.requests === undefined ? MANY : wholeNumber('requests', given.requests, { min: 1, max: MANY });
    const memory = byteSize('memory', given.memory);
    const prefillChunk = tokens('prefill-chunk', given['prefill-chunk']);
    const preset = {
      variant: given.variant as 'whole' | 'split',
      tokensPerBlock: wholeNumber('tokens-per-block', given['tokens-per-block'], { min: 1, max: 65_536 }),
      kvDtype: given['kv-dtype'] as CacheDtype,
      stateDtype: given['state-dtype'] as CacheDtype,
      replayTokens: replay === undefined ? undefined : wholeNumber('replay-tokens', replay, { min: 0, max: 65_536 }),
    };
    const model = await readModelConfig(given.model);
    const made = makePlan(model, {
      preset,
      memory,
      lengths,
      typicalLength: given.typical === undefined ? lengths[Math.floor(lengths.length / 2)] : tokens('typical', given.typical),
      prefillChunk,
      scratch: given.scratch,
    });
    if (given.svg !== undefined) await writeOutput(given.svg, planPicture(made));
    if (given.advise === undefined) {
      if (given.requests !== undefined) throw new UsageError('--requests are those of a trace: say which with --advise');
      terminal.print(given.json ? `${JSON.stringify(made)}\n` : planText(made, terminal));
      return 0;
    }
    const trace = await readTraceRequests(given.advise, { count, maxPrompt: MAX_PROMPT });
    const { layers, tokensPerBlock } = wholePreset(model, preset);
    const advice = await adviceWatched(trace.requests, { layers, tokensPerBlock, memory, stepTokens: prefillChunk }, terminal);
    const { format } = trace;
    terminal.print(
      given.json
        ? `${JSON.stringify({ model: made.model, trace: given.advise, format, advice })}\n`
        : adviceText(`${made.model} (${made.preset.family}), ${basename(given.advise)}`, advice, terminal),
    );
    return 0;
  },
});

/** Everything required, with the rings of the variant that was asked for: their policy is part of the advice. */
function wholePreset({ config }: NamedConfig, preset: PresetOptions): ModelPreset {
  const asked = presetLayers(config, preset);
  const hasRings = asked.layers.some(({ buffers }) => buffers.some(({ role }) => role.startsWith('replay')));
  return presetLayers(config, { ...preset, variant: 'whole', replayTokens: hasRings ? (preset.replayTokens ?? 16) : 0 });
}

async function adviceWatched(requests: readonly TraceRequest[], options: AdviceOptions, terminal: Terminal): Promise<Advice> {
  const bar = progressBar(terminal);
  try {
    return await makeAdvice(requests, options, {
      signal: terminal.signal,
      progress: (tried, toTry, served) =>
        bar.update(
          tried * requests.length + served,
          toTry * requests.length,
          `choice ${tried + 1} of ${toTry}, ${served} of ${requests.length} requests`,
        ),
    });
  } finally {
    bar.clear();
  }
}
