import { HybridEngine } from '@bufferwise/hybrid-engine';
import { defineCommand } from '../command/command.ts';
import { openDevice } from '../gpu/open-device.ts';
import { byteSize, wholeNumber } from '../input/arguments.ts';
import { ENGINE_ARGS } from '../input/engine-args.ts';
import { DEMO_MODEL_FOLDER, readEngineModel } from '../input/model-folder.ts';
import { parsePolicies } from '../input/policies.ts';
import { openPrefixStore, type PrefixStore } from '../input/prefix-store.ts';
import { readPrompts } from '../input/prompts-file.ts';
import { STORE_ENCODING_ARGS, storeEncoding } from '../input/store-encoding.ts';
import { parseStoreAddress } from '../store/store-address.ts';
import { STORE_ARGS, storeChoice } from '../store/store-args.ts';
import { progressBar } from '../terminal/progress-bar.ts';

/** Answers prompts in order, greedy, in one process with one cache. */
export const generate = defineCommand({
  name: 'generate',
  summary: 'Answer prompts in order, each reusing what the earlier ones left in the cache',
  args: {
    model: {
      type: 'string',
      description: 'A GGUF file, or a folder with config.json, tokenizer.json and model.safetensors; else the demo model',
      valueHint: 'FILE|DIR',
    },
    prompts: {
      type: 'string',
      description: 'Prompts, one a line: {"text": …} or {"ids": […]}',
      valueHint: 'FILE.jsonl',
      required: true,
    },
    'max-new-tokens': { type: 'string', description: 'Tokens to generate for each prompt', valueHint: 'N', default: '40' },
    memory: { type: 'string', description: 'Memory for all pages', valueHint: 'SIZE', default: '64MiB' },
    'memory-mib': { type: 'string', description: 'The same in MiB; goes before --memory', valueHint: 'N' },
    ...ENGINE_ARGS,
    ...STORE_ARGS,
    ...STORE_ENCODING_ARGS,
    json: { type: 'boolean', description: 'Print one JSON object for each prompt instead of text', default: false },
  },
  examples: [
    { what: 'Answer with the demo model', line: 'bufferwise generate --prompts prompts.jsonl --max-new-tokens 20' },
    {
      what: 'Any GGUF of a known architecture, policies chosen by cost, drafts of up to 4 tokens',
      line: 'bufferwise generate --model model.gguf --prompts prompts.jsonl --policies auto --drafts 4',
    },
    {
      what: 'Begin with what an earlier run has left on the disk',
      line: 'bufferwise generate --prompts prompts.jsonl --store ~/.cache/bufferwise/prefixes',
    },
    {
      what: 'Share prefixes with other machines through a cluster of Valkey or Redis',
      line: 'bufferwise generate --prompts prompts.jsonl --store redis://10.0.0.1:6379,10.0.0.2:6379 --store-near 256MiB',
    },
    {
      what: 'What each prompt reused, for scripts',
      line: 'bufferwise generate --prompts prompts.jsonl --json | jq .reusedTokens',
    },
  ],
  async run(given, terminal) {
    const maxNewTokens = wholeNumber('max-new-tokens', given['max-new-tokens'], { min: 1, max: 1_000_000 });
    const deviceBytes = memoryBytes(given.memory, given['memory-mib']);
    const maxDrafts = wholeNumber('drafts', given.drafts, { min: 0, max: 64 });
    const encoding = storeEncoding(given);
    const policies = given.policies === undefined ? undefined : parsePolicies(given.policies);
    const address = given.store === undefined ? undefined : parseStoreAddress(given.store);
    const choice = storeChoice(given);
    const model = await readEngineModel(given.model ?? DEMO_MODEL_FOLDER);
    const prompts = await readPrompts(given.prompts, model.tokenizer);
    const { device } = await openDevice();
    const bar = progressBar(terminal);
    let store: PrefixStore | undefined;
    let engine: HybridEngine | undefined;
    const tellTrouble = () => {
      const words = store?.trouble();
      if (words === undefined) return;
      bar.clear();
      terminal.tell(`bufferwise generate: ${words}\n`);
    };
    try {
      if (address !== undefined) store = await openPrefixStore(address, choice, model, encoding);
      tellTrouble();
      const speculation = maxDrafts === 0 ? undefined : { maxDrafts };
      engine = await HybridEngine.create({ model, device, cache: { deviceBytes, policies }, speculation, outside: store });
      for (const [index, prompt] of prompts.entries()) {
        bar.update(index, prompts.length, `prompt ${index + 1} of ${prompts.length}`);
        const { tokens, logProbabilities, report } = await engine.complete({ prompt, maxNewTokens, signal: terminal.signal });
        const text = model.tokenizer.decode(tokens);
        const line = {
          ids: [...prompt],
          tokens,
          logprobs: logProbabilities,
          text,
          reusedTokens: report.reusedTokens,
          computedTokens: report.computedTokens,
          recomputedTokens: report.recomputedTokens,
          draftedTokens: report.draftedTokens,
          acceptedDrafts: report.acceptedDrafts,
          firstTokenMs: report.timeToFirstTokenMs,
          groups: report.groups.map(({ groupId, policy, reusedTokens }) => ({ group: groupId, policy, reusedTokens })),
        };
        tellTrouble();
        bar.clear();
        terminal.print(given.json ? `${JSON.stringify(line)}\n` : `${model.tokenizer.decode(prompt)}${text}\n\n`);
      }
      await engine.saved();
      tellTrouble();
      return 0;
    } finally {
      bar.clear();
      await engine?.close();
      await store?.close();
      device.destroy();
    }
  },
});

/** Bytes for all pages, however they were said. */
export function memoryBytes(size: string, mib: string | undefined): number {
  if (mib === undefined) return byteSize('memory', size);
  return wholeNumber('memory-mib', mib, { min: 1, max: 1_048_576 }) * 2 ** 20;
}
