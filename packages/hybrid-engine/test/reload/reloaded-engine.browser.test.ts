import { expect, test } from 'vitest';
import type { ExpectedAnswer } from '../../src/model/testing/whaler-files.ts';
import type { Question, Reply } from './engine-page.ts';

const NUM_TOKENS = 6;
/** Of the engine's default. */
const TOKENS_PER_BLOCK = 16;
/** Tokens of the beginnings of a prompt that are asked about as well, each as a prompt of its own. */
const SHORT = [48, 96, 192];

/** A page in a frame; loading it anew ends its engine, its device and its worker. */
class Page {
  readonly #frame = document.createElement('iframe');

  constructor() {
    this.#frame.srcdoc = `<script type="module" src="${new URL('./engine-page.ts', import.meta.url).href}"></script>`;
  }

  async open(): Promise<void> {
    const ready = this.#ready();
    document.body.append(this.#frame);
    await ready;
  }

  async reload(): Promise<void> {
    const ready = this.#ready();
    this.#frame.contentWindow?.location.reload();
    await ready;
  }

  ask(question: Question): Promise<Reply> {
    const { port1, port2 } = new MessageChannel();
    return new Promise((resolve) => {
      port1.onmessage = ({ data }) => resolve(data);
      this.#frame.contentWindow?.postMessage(question, '*', [port2]);
    });
  }

  remove(): void {
    this.#frame.remove();
  }

  #ready(): Promise<void> {
    return new Promise((resolve) => {
      const listen = ({ data, source }: MessageEvent) => {
        if (data !== 'engine-page is ready' || source !== this.#frame.contentWindow) return;
        removeEventListener('message', listen);
        resolve();
      };
      addEventListener('message', listen);
    });
  }
}

async function longestAnswer(): Promise<ExpectedAnswer> {
  const response = await fetch(new URL('../../../../models/whaler-1m/expected.json', import.meta.url));
  const { prompts } = (await response.json()) as { prompts: ExpectedAnswer[] };
  return prompts.reduce((a, b) => (b.ids.length > a.ids.length ? b : a));
}

test('a conversation goes on after the page was reloaded, without being computed again', { timeout: 300_000 }, async () => {
  const { ids: prompt, greedy } = await longestAnswer();
  const directory = `test-${crypto.randomUUID()}`;
  const questions = [...SHORT, prompt.length].map((length) => {
    return { directory, prompt: prompt.slice(0, length), maxNewTokens: NUM_TOKENS, salt: length };
  });
  const page = new Page();
  const askAll = async () => {
    const replies: Reply[] = [];
    for (const question of questions) replies.push(await page.ask(question));
    return replies;
  };
  try {
    await page.open();
    const cold = await askAll();
    expect(cold.at(-1)?.tokens).toEqual(greedy.slice(0, NUM_TOKENS));
    for (const reply of cold) expect(reply).toMatchObject({ reusedTokens: 0, loadedTokens: 0 });
    expect(cold.at(-1)?.savedTokens).toBeGreaterThan(0.9 * prompt.length);
    const inMemory = await askAll();
    await page.reload();
    const fromFiles = await askAll();
    for (const [i, { prompt: asked }] of questions.entries()) {
      expect(inMemory[i]).toMatchObject({ tokens: cold[i].tokens, reusedTokens: asked.length - 1, loadedTokens: 0 });
      expect(fromFiles[i]).toMatchObject({ tokens: cold[i].tokens, failedLoads: 0 });
      expect(fromFiles[i].world).not.toBe(cold[i].world);
      // All whole blocks that leave a token to be computed.
      expect(fromFiles[i].reusedTokens).toBeGreaterThan(asked.length - 1 - TOKENS_PER_BLOCK);
      expect(fromFiles[i].loadedTokens).toBe(fromFiles[i].reusedTokens);
    }
    for (const [i, { prompt: asked }] of questions.entries()) {
      const [computed, ...warm] = [cold, fromFiles, inMemory].map((replies) => replies[i].firstTokenMs);
      const [files, memory] = warm.map((ms) => `${ms.toFixed(0)} ms (${(ms / computed).toFixed(2)})`);
      console.info(
        `${asked.length} tokens, first token: cold ${computed.toFixed(0)} ms, from OPFS ${files}, in memory ${memory}`,
      );
    }
    const pays = questions.find((_, i) => fromFiles[i].firstTokenMs < cold[i].firstTokenMs);
    console.info(
      `OPFS is faster than computing from ${pays === undefined ? 'more' : pays.prompt.length} tokens on, of the lengths that were tried`,
    );
  } finally {
    page.remove();
  }
});
