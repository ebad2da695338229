import type { CacheDtype } from '@bufferwise/core-policy';
import { defineCommand } from '../command/command.ts';
import { byteSize, wholeNumber, wholeNumbers } from '../input/arguments.ts';
import { EXAMPLE_NAMES, readModelConfig } from '../input/model-config.ts';
import { writeOutput } from '../input/output-file.ts';
import { makePlan } from '../plan/make-plan.ts';
import { planPicture } from '../plan/plan-picture.ts';
import { planText } from '../plan/plan-text.ts';

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
  ],
  async run(given, terminal) {
    const tokens = (name: string, text: string) => wholeNumber(name, text, { min: 1, max: MAX_TOKENS });
    const lengths = wholeNumbers('lengths', given.lengths, { min: 1, max: MAX_TOKENS });
    const replay = given['replay-tokens'];
    const made = makePlan(await readModelConfig(given.model), {
      preset: {
        variant: given.variant as 'whole' | 'split',
        tokensPerBlock: wholeNumber('tokens-per-block', given['tokens-per-block'], { min: 1, max: 65_536 }),
        kvDtype: given['kv-dtype'] as CacheDtype,
        stateDtype: given['state-dtype'] as CacheDtype,
        replayTokens: replay === undefined ? undefined : wholeNumber('replay-tokens', replay, { min: 0, max: 65_536 }),
      },
      memory: byteSize('memory', given.memory),
      lengths,
      typicalLength: given.typical === undefined ? lengths[Math.floor(lengths.length / 2)] : tokens('typical', given.typical),
      prefillChunk: tokens('prefill-chunk', given['prefill-chunk']),
      scratch: given.scratch,
    });
    if (given.svg !== undefined) await writeOutput(given.svg, planPicture(made));
    terminal.print(given.json ? `${JSON.stringify(made)}\n` : planText(made, terminal));
    return 0;
  },
});
