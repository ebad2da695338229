import { readFileSync } from 'node:fs';
import { Tokenizer } from '@bufferwise/hybrid-engine';
import { describe, expect, it } from 'vitest';
import { chatPrompt } from './chat-prompt.ts';
import { type ChatMessage, jinjaTemplate, plainTemplate } from './chat-template.ts';

const CHATML =
  "{{ bos_token }}{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
const messages: ChatMessage[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Hello' },
];
const none = { bosToken: '', eosToken: '' };

describe('a chat template', () => {
  it('of the model is rendered as its authors meant it', () => {
    const template = jinjaTemplate(CHATML, 'test', { bosToken: '<s>', eosToken: '' });
    expect(template.render(messages, true)).toBe(
      '<s><|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n',
    );
    expect(template.render(messages.slice(0, 1), false)).toBe('<s><|im_start|>system\nBe brief.<|im_end|>\n');
  });

  it('that refuses a conversation says why', () => {
    const template = jinjaTemplate("{{ raise_exception('roles must alternate') }}", 'test', none);
    expect(() => template.render(messages, true)).toThrow(
      expect.objectContaining({ status: 400, param: 'messages', message: expect.stringContaining('roles must alternate') }),
    );
  });

  it('treats what people say as text, and never as a template', () => {
    const template = jinjaTemplate('{{ messages[0].content }}', 'test', none);
    expect(template.render([{ role: 'user', content: '{{ 7 * 6 }}' }], true)).toBe('{{ 7 * 6 }}');
  });

  it('that cannot be parsed is told before anybody asks', () => {
    expect(() => jinjaTemplate('{% for %}', 'the file', none)).toThrow(/the chat template of the file cannot be parsed/);
  });

  it('is plain lines where there is none', () => {
    expect(plainTemplate.render([...messages, { role: 'assistant', content: 'Hi' }], false)).toBe(
      'System: Be brief.\nUser: Hello\nAssistant: Hi\n',
    );
    expect(plainTemplate.render(messages, true)).toBe('System: Be brief.\nUser: Hello\nAssistant:');
  });
});

describe('the tokens of a conversation', () => {
  const json = readFileSync(new URL('../../../../../models/whaler-1m/tokenizer.json', import.meta.url), 'utf8');
  const tokenizer = new Tokenizer(JSON.parse(json));
  const encode = (text: string) => tokenizer.encode(text);

  it('have borders behind the system prompt and the last message', () => {
    const { tokens, turnBorders } = chatPrompt(encode, plainTemplate, messages, 1000);
    expect(tokenizer.decode(tokens)).toBe('System: Be brief.\nUser: Hello\nAssistant:');
    expect(turnBorders.map((border) => tokenizer.decode(tokens.subarray(0, border)))).toEqual([
      'System: Be brief.\n',
      'System: Be brief.\nUser: Hello\n',
    ]);
  });

  it('have no border inside of a token', () => {
    // What comes behind the first message makes one token with its end.
    const template = { ...plainTemplate, render: (all: readonly ChatMessage[]) => (all.length === 1 ? 'the wha' : 'the whale') };
    const { tokens, turnBorders } = chatPrompt(encode, template, messages, 1000);
    expect(tokens.length).toBeLessThan(tokenizer.encode('the wha').length + 1);
    expect(turnBorders).toEqual([tokens.length]);
  });

  it('have none where a template changes what came before, or refuses a part', () => {
    const changing = { ...plainTemplate, render: (all: readonly ChatMessage[]) => `${all.length} messages` };
    expect(chatPrompt(encode, changing, messages, 1000).turnBorders).toHaveLength(1);
    const strict = jinjaTemplate(`{% if messages|length < 2 %}{{ raise_exception('more') }}{% endif %}ab`, 'test', none);
    expect(chatPrompt(encode, strict, messages, 1000).turnBorders).toHaveLength(1);
  });

  it('are not looked at twice when they are too many', () => {
    expect(chatPrompt(encode, plainTemplate, messages, 5).turnBorders).toEqual([]);
  });
});
