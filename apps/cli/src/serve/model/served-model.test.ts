import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkedTokens, promptEncoder } from './prompt-encoder.ts';
import { readServedModel } from './served-model.ts';

const repository = (path: string) => fileURLToPath(new URL(`../../../../../${path}`, import.meta.url));
const WHALER = repository('models/whaler-1m');
const LLAMA = repository('internal/test-kit/oracle-models/llama-103.gguf');
const MESSAGES = [{ role: 'user', content: 'Hello' }] as const;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bufferwise-model-'));
  for (const name of ['config.json', 'tokenizer.json', 'model.safetensors'])
    await copyFile(join(WHALER, name), join(folder, name));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The demo model with what other folders have besides. */
async function withConfig(config: unknown): Promise<string> {
  await writeFile(join(folder, 'tokenizer_config.json'), typeof config === 'string' ? config : JSON.stringify(config));
  return folder;
}

describe('a model that is served', () => {
  it('is called after its file, and knows where prompts begin and answers end', async () => {
    const llama = await readServedModel(LLAMA);
    expect(llama).toMatchObject({ id: 'llama-103', startToken: null, endTokens: [2], contextLength: 1024 });
    const whaler = await readServedModel(`${WHALER}/`);
    expect(whaler).toMatchObject({ id: 'whaler-1m', startToken: null, endTokens: [0], contextLength: null });
    expect(whaler.chatTemplate.origin).toBe('plain');
    expect((await readServedModel(LLAMA, { id: 'mine' })).id).toBe('mine');
  });

  it('brings the template of its folder, by any of its names', async () => {
    const named = [
      { name: 'tools', template: 'no' },
      { name: 'default', template: '{{ bos_token }}{{ messages[0].content }}' },
    ];
    for (const template of [named[1].template, named]) {
      const config = { chat_template: template, bos_token: { content: '<|end|>' }, eos_token: '<|end|>', add_bos_token: true };
      const { chatTemplate, startToken, endTokens } = await readServedModel(await withConfig(config));
      expect(chatTemplate.origin).toBe('tokenizer_config.json');
      expect(chatTemplate.render(MESSAGES, true)).toBe('<|end|>Hello');
      expect([startToken, endTokens]).toEqual([0, [0]]);
    }
    const own = join(folder, 'chat_template.jinja');
    await writeFile(own, 'own: {{ messages[0].content }}');
    expect((await readServedModel(folder)).chatTemplate.render(MESSAGES, true)).toBe('own: Hello');
    const given = await readServedModel(WHALER, { templateFile: own });
    expect(given.chatTemplate.render(MESSAGES, true)).toBe('own: Hello');
    await rm(own);
  });

  it('begins a prompt with its start token, once', async () => {
    const model = await readServedModel(await withConfig({ bos_token: '<|end|>', add_bos_token: true }));
    const encode = promptEncoder(model);
    expect([...encode('Hello')].slice(1)).toEqual([...model.engineModel.tokenizer.encode('Hello')]);
    expect(encode('Hello')[0]).toBe(0);
    expect(encode('<|end|>Hello')).toEqual(encode('Hello'));
    expect([...encode('')]).toEqual([0]);
  });

  it('takes tokens that it has, and no others', async () => {
    const model = await readServedModel(LLAMA);
    expect([...checkedTokens(model, [0, 319], 'prompt')]).toEqual([0, 319]);
    expect(() => checkedTokens(model, [0, 320], 'prompt')).toThrow(expect.objectContaining({ status: 400, param: 'prompt[1]' }));
  });

  it('is refused in one line when its files are not sound', async () => {
    await expect(readServedModel(await withConfig('{'))).rejects.toThrow(/tokenizer_config.json is not JSON/);
    await expect(readServedModel(await withConfig('7'))).rejects.toThrow(/tokenizer_config.json is no object/);
    await expect(readServedModel(await withConfig({ chat_template: '{% for %}' }))).rejects.toThrow(/cannot be parsed/);
    await expect(readServedModel(WHALER, { templateFile: join(folder, 'nowhere') })).rejects.toThrow(
      /cannot read .*nowhere: ENOENT/,
    );
  });
});
