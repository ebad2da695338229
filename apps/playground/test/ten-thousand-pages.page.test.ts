import { join } from 'node:path';
import { build } from 'esbuild';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { launchBrowser, PlaygroundPage } from './support/playground-page.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const NUM_FRAMES = 120;

let browser: Browser;
let worker: string;
beforeAll(async () => {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, 'support/many-pages-worker.ts')],
    bundle: true,
    write: false,
    format: 'esm',
    conditions: ['@bufferwise/source'],
    loader: { '.wgsl': 'text' },
  });
  worker = outputFiles[0].text;
  browser = await launchBrowser();
});
afterAll(() => browser.close());

/** What went into pictures since the page was opened. */
interface Drawn {
  /** Frames that came from the worker. */
  frames: number;
  /** Pictures of the screen in which a canvas was painted, times that one was, and rows of pixels that were handed to it. */
  pictures: number;
  paints: number;
  rows: number;
}

/** Counts in the page, from outside of the app. */
function countInPage(): void {
  const drawn: Drawn = { frames: 0, pictures: 0, paints: 0, rows: 0 };
  let counted = false;
  const { putImageData } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.putImageData = function (this: CanvasRenderingContext2D, ...given: unknown[]) {
    drawn.paints++;
    drawn.rows += given[6] as number;
    if (!counted) {
      counted = true;
      drawn.pictures++;
      requestAnimationFrame(() => {
        counted = false;
      });
    }
    return putImageData.apply(this, given as never);
  } as never;
  const { Worker: Plain } = globalThis;
  globalThis.Worker = class extends Plain {
    constructor(...given: ConstructorParameters<typeof Plain>) {
      super(...given);
      this.addEventListener('message', ({ data }) => {
        if (data.type === 'frame') drawn.frames++;
      });
    }
  };
  Object.assign(globalThis, { drawn });
}

test('ten thousand pages that all change go from the worker onto the screen once each time, and one that changes alone', async ({
  annotate,
}) => {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' });
  await context.addInitScript(countInPage);
  await context.route('**/assets/main-*.js', (route) => route.fulfill({ contentType: 'text/javascript', body: worker }));
  const at = await PlaygroundPage.open(context);
  await at.isReady();
  const { page } = at;
  await expect.poll(() => at.pagesOf('Full attention')).toBe(9_999);
  const drawn = () => page.evaluate(() => ({ ...(globalThis as unknown as { drawn: Drawn }).drawn }));
  const height = await page
    .locator('.cells canvas')
    .first()
    .evaluate((canvas: HTMLCanvasElement) => canvas.height);

  const session = await context.newCDPSession(page);
  await session.send('Performance.enable');
  const taken = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    const seconds = (name: string) => metrics.find((metric) => metric.name === name)?.value ?? 0;
    return { script: seconds('ScriptDuration'), task: seconds('TaskDuration'), time: seconds('Timestamp') };
  };
  const pace = page.getByRole('switch', { name: 'Step by step' });
  const [before, timesBefore] = [await drawn(), await taken()];
  await pace.click();
  await page.waitForFunction(
    (until) => (globalThis as unknown as { drawn: Drawn }).drawn.frames >= until,
    before.frames + NUM_FRAMES,
  );
  const [after, timesAfter] = [await drawn(), await taken()];
  await pace.click();
  const [frames, pictures, paints, rows] = (['frames', 'pictures', 'paints', 'rows'] as const).map(
    (name) => after[name] - before[name],
  );
  // All of the canvas each time, once, and never without something new.
  expect(paints).toBe(pictures);
  // The last slots are free all the time.
  expect(rows).toBeLessThanOrEqual(pictures * height);
  expect(rows).toBeGreaterThan(0.95 * pictures * height);
  expect(pictures).toBeLessThanOrEqual(frames + 1);
  expect(pictures).toBeGreaterThan(NUM_FRAMES / 12);
  const spent = (name: 'script' | 'task' | 'time') => timesAfter[name] - timesBefore[name];
  await annotate(
    `${(frames / spent('time')).toFixed(0)} looks and ${(pictures / spent('time')).toFixed(0)} pictures a second of 10,000 pages; in the page ` +
      `${((1000 * spent('script')) / frames).toFixed(1)} ms of script and ${((1000 * spent('task')) / frames).toFixed(1)} ms of all work a look`,
  );

  await page.getByText('All is still.').waitFor();
  // What came last has been drawn.
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const still = await drawn();
  await page.getByRole('button', { name: 'Forget everything' }).click();
  await expect.poll(async () => (await drawn()).paints).toBe(still.paints + 1);
  // A row of cells.
  expect((await drawn()).rows - still.rows).toBeLessThan(height / 20);
  await at.close();
});
