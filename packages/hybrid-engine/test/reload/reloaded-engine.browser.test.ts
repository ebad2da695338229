import { expect, test } from 'vitest';
import type { ExpectedAnswer } from '../../src/model/testing/whaler-files.ts';
import type { Question, Reply } from './engine-page.ts';

const NUM_TOKENS = 6;

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
  const expected = greedy.slice(0, NUM_TOKENS);
  const question = { directory: `test-${crypto.randomUUID()}`, prompt, maxNewTokens: NUM_TOKENS };
  const page = new Page();
  try {
    await page.open();
    const cold = await page.ask(question);
    expect(cold).toMatchObject({ tokens: expected, reusedTokens: 0, loadedTokens: 0 });
    expect(cold.savedTokens).toBeGreaterThan(0.9 * prompt.length);
    const fromMemory = await page.ask(question);
    expect(fromMemory).toMatchObject({ tokens: expected, reusedTokens: prompt.length - 1, loadedTokens: 0 });

    await page.reload();
    const fromFiles = await page.ask(question);
    expect(fromFiles).toMatchObject({ tokens: expected, failedLoads: 0 });
    expect(fromFiles.world).not.toBe(cold.world);
    expect(fromFiles.reusedTokens).toBeGreaterThan(0.9 * prompt.length);
    expect(fromFiles.loadedTokens).toBe(fromFiles.reusedTokens);

    const times = [cold, fromFiles, fromMemory].map(({ firstTokenMs }) => `${firstTokenMs.toFixed(0)} ms`);
    console.info(
      `${prompt.length} tokens, first token: cold ${times[0]}, warm from OPFS ${times[1]}, warm in memory ${times[2]}`,
    );
  } finally {
    page.remove();
  }
});
