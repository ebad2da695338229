/** Two chats on one beginning: the demo model answers on WebGPU in Node, and reads the beginning once. */
import { readFile } from 'node:fs/promises';
import { HybridEngine, readModel } from '@bufferwise/hybrid-engine';
import { create } from 'webgpu';

const folder = process.argv[2] ?? 'models/whaler-1m';
const read = (name: string) => readFile(`${folder}/${name}`);
const [config, tokenizer, weights] = await Promise.all(['config.json', 'tokenizer.json', 'model.safetensors'].map(read));
const model = readModel({ config, tokenizer, weights });

const gpu = create([]);
const adapter = await gpu.requestAdapter();
if (adapter === null) throw new Error('WebGPU finds no adapter on this machine.');
const device = await adapter.requestDevice();
const engine = await HybridEngine.create({ model, device });

const beginning = model.tokenizer.encode(
  'Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, and nothing ' +
    'particular to interest me on shore, I thought I would sail about a little and see the watery part of the world.',
);

class Chat {
  readonly #name: string;
  #tokens: number[] = [...beginning];

  constructor(name: string) {
    this.#name = name;
  }

  /** Answers what is said, and prints what of all that was said before came from memory. */
  async say(text: string): Promise<void> {
    this.#tokens.push(...model.tokenizer.encode(text));
    // Where a beginning ends that others share: the state is kept there, and whoever comes next goes on from it.
    const turnBorders = [beginning.length];
    const { tokens, report } = await engine.complete({ prompt: this.#tokens, maxNewTokens: 12, turnBorders });
    this.#tokens.push(...tokens);
    console.log(`\n${this.#name}:${text} …${model.tokenizer.decode(tokens)}`);
    console.log(`  prompt of ${report.promptTokens} tokens: ${report.reusedTokens} reused, ${report.computedTokens} computed`);
    for (const { groupId, reusedTokens } of report.groups) {
      const lifecycle = engine.manager.lifecycles.get(groupId);
      const attention = lifecycle.kind === 'attention' && (lifecycle.windowSize ? 'sliding window' : 'full attention');
      console.log(`  ${(attention || 'recurrent state').padEnd(15)} begins with ${reusedTokens} tokens`);
    }
  }
}

const [a, b] = [new Chat('Chat A'), new Chat('Chat B')];
await a.say(' The captain said');
await b.say(' At last the whale');
await a.say(' Then');

await engine.close();
device.destroy();
