import { AxeBuilder } from '@axe-core/playwright';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { launchBrowser, PlaygroundPage } from './support/playground-page.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

/** What axe finds, in words. */
async function faults({ page }: PlaygroundPage): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ target }) => target).join(', ')}`);
}

const SCREENS: [string, BrowserContextOptions][] = [
  ['wide and dark', { colorScheme: 'dark' }],
  ['narrow and light', { colorScheme: 'light', viewport: { width: 360, height: 740 }, reducedMotion: 'reduce' }],
];

describe.each(SCREENS)('a screen that is %s', (_, options) => {
  let at: PlaygroundPage;
  beforeAll(async () => {
    at = await PlaygroundPage.ready(browser, options);
  });
  afterAll(() => at.close());

  test('is free of what axe knows to shut people out, before and after conversations', async () => {
    expect(await faults(at)).toEqual([]);
    await at.answerShortly();
    await at.begin('The same words twice');
    await at.isDone('A', 'B');
    expect(await faults(at)).toEqual([]);
    for (const tab of ['Tree', 'Groups', 'Policies', 'Scratch']) {
      await at.tab(tab);
      if (tab === 'Tree') await at.page.getByRole('tree').locator('.run-line').first().click();
      expect(await faults(at)).toEqual([]);
    }
  });

  test('tabs and conversations can be used by keys alone', async () => {
    const { page } = at;
    await at.tab('Story');
    await page.keyboard.press('ArrowRight');
    expect(await page.getByRole('tab', { name: 'Tree' }).getAttribute('aria-selected')).toBe('true');
    await page.getByRole('button', { name: 'New', exact: true }).focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('Say something in C').and(page.locator(':focus')).waitFor();
    await page.keyboard.type('Call me Ishmael.');
    await page.keyboard.press('Enter');
    await at.isDone('C');
    await page
      .getByRole('status')
      .filter({ hasText: /C has answered with 8 tokens/ })
      .waitFor({ state: 'attached' });
  });

  test('loads less than 400 kB of script, and only from the address of the page', async () => {
    const scripts = [...at.asked].filter((url) => url.endsWith('.js'));
    // The page's, and the worker's.
    expect(scripts.length).toBe(2);
    let total = 0;
    for (const script of scripts) {
      const { headers } = await fetch(script, { headers: { 'accept-encoding': 'gzip' } });
      expect(headers.get('content-encoding')).toBe('gzip');
      total += Number(headers.get('content-length'));
    }
    expect(total).toBeGreaterThan(50_000);
    expect(total).toBeLessThan(400_000);
  });

  test('has nothing to be scrolled to sideways', async () => {
    const [content, window] = await at.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    expect(content).toBeLessThanOrEqual(window);
    for (const panel of await at.page.locator('.panel, [role="tablist"]').all()) {
      const [inside, room] = await panel.evaluate((element) => [element.scrollWidth, element.clientWidth]);
      expect(inside, (await panel.getAttribute('class')) ?? 'tabs').toBeLessThanOrEqual(room);
    }
  });
});

/** The page in a browser that has no WebGPU. */
async function withoutGpu(options: BrowserContextOptions): Promise<PlaygroundPage> {
  const context = await browser.newContext(options);
  await context.addInitScript(() => Object.defineProperty(Navigator.prototype, 'gpu', { get: () => undefined }));
  return PlaygroundPage.open(context);
}

test('the theme follows the system, and then the person', async () => {
  const at = await withoutGpu({ colorScheme: 'light' });
  const theme = () => at.page.evaluate(() => document.documentElement.dataset.theme);
  expect(await theme()).toBe('light');
  await at.page.getByRole('button', { name: 'Theme: system' }).click();
  expect(await theme()).toBe('dark');
  await at.page.reload();
  expect(await theme()).toBe('dark');
  await at.close();
});

describe('without WebGPU the page says so, and what helps,', () => {
  test('where the browser has none', async () => {
    const at = await withoutGpu({});
    await at.page.getByRole('heading', { name: 'This page needs WebGPU' }).waitFor();
    expect(await at.page.getByRole('alert').textContent()).toMatch(/does not offer WebGPU/);
    expect(await faults(at)).toEqual([]);
    await at.close();
  });

  test('where it finds no device', async () => {
    const context = await browser.newContext();
    // The worker's own view of the browser is out of reach from here: its script is told before it begins.
    await context.route('**/assets/*.js', async (route) => {
      const response = await route.fetch();
      const noDevice = 'if (self.WorkerNavigator) GPU.prototype.requestAdapter = async () => null;';
      await route.fulfill({ response, body: `${noDevice}${await response.text()}` });
    });
    const at = await PlaygroundPage.open(context);
    await at.page.getByRole('heading', { name: 'This page needs WebGPU' }).waitFor();
    expect(await at.page.getByRole('alert').textContent()).toMatch(/finds no graphics device/);
    await at.close();
  });
});
