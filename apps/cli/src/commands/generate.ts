import { HybridEngine } from '@bufferwise/hybrid-engine';
import { defineCommand } from 'citty';
import { openDevice } from '../gpu/open-device.ts';
import { refuseUnknown, wholeNumber } from '../input/arguments.ts';
import { DEMO_MODEL_FOLDER, readModelFolder } from '../input/model-folder.ts';
import { readPrompts } from '../input/prompts-file.ts';

const args = {
  model: { type: 'string', description: 'Folder of the model', valueHint: 'DIR', default: DEMO_MODEL_FOLDER },
  prompts: {
    type: 'string',
    description: 'Prompts, one a line: {"text": …} or {"ids": […]}',
    valueHint: 'FILE.jsonl',
    required: true,
  },
  'max-new-tokens': { type: 'string', description: 'Tokens to generate for each prompt', valueHint: 'N', default: '40' },
  'memory-mib': { type: 'string', description: 'Memory for all pages, in MiB', valueHint: 'N', default: '64' },
  json: { type: 'boolean', description: 'Print one JSON object for each prompt instead of text', default: false },
} as const;

/** Answers prompts in order, greedy, in one process with one cache. */
export const generate = defineCommand({
  meta: { name: 'generate', description: 'Answer prompts in order, each reusing what the earlier ones left in the cache' },
  args,
  async run({ args: given }) {
    refuseUnknown('generate', given, args);
    const maxNewTokens = wholeNumber('max-new-tokens', given['max-new-tokens'], { min: 1, max: 1_000_000 });
    const deviceBytes = wholeNumber('memory-mib', given['memory-mib'], { min: 1, max: 1_048_576 }) * 2 ** 20;
    const model = await readModelFolder(given.model);
    const prompts = await readPrompts(given.prompts, model.tokenizer);
    const { device } = await openDevice();
    try {
      const engine = await HybridEngine.create({ model, device, cache: { deviceBytes } });
      for (const prompt of prompts) {
        const { tokens, logProbabilities, report } = await engine.complete({ prompt, maxNewTokens });
        const text = model.tokenizer.decode(tokens);
        const line = {
          ids: [...prompt],
          tokens,
          logprobs: logProbabilities,
          text,
          reusedTokens: report.reusedTokens,
          computedTokens: report.computedTokens,
          groups: report.groups.map(({ groupId, policy, reusedTokens }) => ({ group: groupId, policy, reusedTokens })),
        };
        process.stdout.write(given.json ? `${JSON.stringify(line)}\n` : `${model.tokenizer.decode(prompt)}${text}\n\n`);
      }
      await engine.close();
    } finally {
      device.destroy();
    }
  },
});
