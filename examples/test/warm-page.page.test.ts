import { chromiumForTests } from '@bufferwise-internal/webgpu-node';
import { chromium } from 'playwright-core';
import { expect, test } from 'vitest';
import { serveFolder } from '../../apps/playground/serve/serve-folder.mjs';
import { builtPage } from '../../scripts/run/example.mjs';

test('warm-page has after a reload what it computed before, from the files of the browser', { timeout: 300_000 }, async () => {
  const server = await serveFolder(await builtPage());
  const browser = await chromium.launch(await chromiumForTests());
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000);
  const problems: string[] = [];
  page.on('pageerror', ({ message }) => problems.push(message));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });

  /** Where the tokens of the prompt came from, and the answer. */
  const goOn = async () => {
    await page.getByRole('button', { name: 'Go on' }).click();
    const text = await page.getByText(/\d+ tokens: \d+ from files/).textContent();
    const [, all, files, memory, computed] =
      /^(\d+) tokens: (\d+) from files, (\d+) from memory, (\d+) computed/.exec(text ?? '') ?? [];
    return {
      all: Number(all),
      files: Number(files),
      memory: Number(memory),
      computed: Number(computed),
      answer: await page.locator('#answer').textContent(),
    };
  };

  await page.goto(server.url);
  const cold = await goOn();
  expect(cold).toMatchObject({ files: 0, memory: 0, computed: cold.all });
  expect(cold.all).toBeGreaterThan(50);

  await page.reload();
  const warm = await goOn();
  // Files have whole blocks of 16 tokens, and the last token is always computed.
  expect(warm.files).toBeGreaterThanOrEqual(warm.all - 17);
  expect(warm).toMatchObject({ all: cold.all, memory: 0, computed: cold.all - warm.files, answer: cold.answer });

  expect(problems).toEqual([]);
  await browser.close();
  await server.close();
});
