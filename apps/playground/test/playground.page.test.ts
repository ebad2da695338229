import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { PRESETS } from '../src/story/passages.ts';
import { launchBrowser, PlaygroundPage } from './support/playground-page.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

const SHARED = 'One beginning, three endings';
const STRANGERS = PRESETS[2];

describe('conversations', () => {
  let at: PlaygroundPage;
  beforeAll(async () => {
    at = await PlaygroundPage.ready(browser);
    await at.answerShortly();
  });
  afterAll(() => at.close());

  test('whoever begins with the same words finds them in memory, counted token by token', async () => {
    await at.begin(SHARED);
    await at.isDone('A', 'B', 'C');
    expect((await at.found('A')).found).toBe(0);
    for (const name of ['B', 'C']) {
      const { found, of } = await at.found(name);
      expect(found).toBeGreaterThan(250);
      expect(of - found).toBeLessThan(10);
    }
    const log = at.page.getByRole('log');
    await expect.poll(() => log.textContent()).toMatch(/B finds \d+ of its \d+ tokens in memory/);
    expect(await log.textContent()).toMatch(/replay ring is private: nobody lends it/);
  });

  test('the pages of a private ring are gone with the answers, those of other groups stay', async () => {
    await expect.poll(() => at.pagesOf('Replay ring')).toBe(0);
    expect(await at.pagesOf('Full attention')).toBeGreaterThan(18);
    expect(await at.pagesOf('Recurrent state')).toBeGreaterThan(2);
  });

  test('the tree shows where texts part, and a block leads to its pages in the map', async () => {
    await at.tab('Tree');
    const runs = at.page.getByRole('tree').locator('.run');
    await expect.poll(() => runs.count()).toBeGreaterThanOrEqual(4);
    await runs.first().locator('.run-line').first().click();
    await at.page.getByRole('tree').locator('.block').first().click();
    // One page of each group that lends them.
    await expect.poll(() => at.page.locator('.ring.chosen').count()).toBeGreaterThanOrEqual(2);
  });

  test('a page leads to its block in the tree, by keys alone', async () => {
    await at.tab('Story');
    await at.page.getByRole('application', { name: 'Pages of Full attention' }).first().focus();
    await at.page.keyboard.press('Home');
    await at.page.keyboard.press('ArrowRight');
    await at.page.keyboard.press('Enter');
    await at.page.getByRole('treeitem', { selected: true }).waitFor();
    expect(await at.page.locator('.tip:visible').textContent()).toMatch(/Full attention, slot 1[\s\S]*tokens 16 to 31/);
    await at.tab('Story');
  });

  test('a page under the mouse says what it is, and a click follows it into the tree', async () => {
    const cells = at.page.getByRole('application', { name: 'Pages of Full attention' }).first().locator('canvas');
    const third = { position: { x: 26, y: 4 } };
    await cells.hover(third);
    const tip = await at.page.locator('.tip:visible').textContent();
    expect(tip).toMatch(/slot 2[\s\S]*Block \d+: tokens 32 to 47[\s\S]*\d references?, priority \d+/);
    await cells.click(third);
    await at.page.getByRole('tab', { name: 'Tree', selected: true }).waitFor();
    expect(await at.page.getByRole('treeitem', { selected: true }).locator('.ordinal').textContent()).toBe('2');
    await at.tab('Story');
  });

  test('a long answer streams, and can be stopped', async () => {
    await at.answerShortly(128);
    await at.conversation('A').getByRole('button', { name: 'Continue in A' }).click();
    await at.conversation('A').getByText('Answering').waitFor();
    await at.conversation('A').getByRole('button', { name: 'Stop A' }).click();
    await at.conversation('A').getByText('Stopped').waitFor();
    await at.answerShortly();
  });

  test('a branch begins with the memory of what it branched from', async () => {
    await at
      .conversation('B')
      .getByRole('button', { name: /Branch off B/ })
      .click();
    await at.conversation('D').getByLabel('Say something in D').fill('Then the old man said');
    await at.page.keyboard.press('Enter');
    await at.isDone('D');
    const { found, of } = await at.found('D');
    expect(found).toBeGreaterThan(0.9 * of - 10);
  });

  test('less memory sends pages away, first to host memory', async () => {
    const slider = at.page.getByRole('slider', { name: 'Device memory' });
    await at.begin('Five strangers');
    await at.isDone('E', 'F', 'G', 'H', 'I');
    await slider.focus();
    await at.page.keyboard.press('Home');
    await expect.poll(() => at.page.getByRole('log').textContent()).toMatch(/The device has 10 MiB for pages now/);
    await at.tab('Groups');
    await expect
      .poll(async () =>
        Number(
          await at.page
            .locator('.group', { hasText: 'Window of 128' })
            .locator('tr', { hasText: 'Left the device' })
            .locator('td')
            .textContent(),
        ),
      )
      .toBeGreaterThan(0);
    expect(await at.pagesOf('Window of 128', 1)).toBeGreaterThan(0);
    await at.tab('Story');
    expect(await at.page.getByRole('log').textContent()).toMatch(/left the device/);
  });

  test('what is forgotten is not found again', async () => {
    await at.page.getByRole('button', { name: 'Forget everything' }).click();
    await expect.poll(() => at.pagesOf('Full attention')).toBe(0);
    await at.tab('Tree');
    await at.page.getByText('the tree is empty').waitFor();
    await at.tab('Story');
  });
});

describe('one by one', () => {
  let at: PlaygroundPage;
  beforeAll(async () => {
    at = await PlaygroundPage.ready(browser);
    await at.answerShortly();
  });
  afterAll(() => at.close());

  test('step by step, nothing moves until the next step, and each step is told', async () => {
    await at.page.getByRole('switch', { name: 'Step by step' }).check();
    await at.begin('The same words twice');
    const next = at.page.getByRole('button', { name: 'Next step' });
    const answered = async (name: string) => (await at.conversation(name).textContent())?.match(/(\d+) answered/)?.[1];
    await next.click();
    await expect.poll(() => answered('A')).toBe('1');
    await at.page.getByText('Every conversation waits.').waitFor();
    for (const expected of ['2', '3']) {
      await next.click();
      await expect.poll(async () => Number(await answered('A'))).toBeGreaterThanOrEqual(Number(expected));
    }
    await expect.poll(() => at.page.getByRole('log').textContent()).toMatch(/B finds \d+ of its \d+ tokens/);
    await at.page.getByRole('switch', { name: 'Step by step' }).uncheck();
    await at.isDone('A', 'B');
  });

  test('after a reload the first answer begins with what the visit before has left', async () => {
    // Of the conversations before.
    await expect.poll(() => at.page.locator('.kept').textContent()).toMatch(/: [1-9][\d,]* tokens kept/);
    await at.page.reload();
    await at.isReady();
    await at.answerShortly();
    await at.begin('The same words twice');
    await at.isDone('A');
    const { found, of } = await at.found('A');
    expect(found).toBeGreaterThan(of - 20);
    await at.tab('Story');
    expect(await at.page.getByRole('log').textContent()).toMatch(/tokens of memory came from an earlier visit/);

    await at.isDone('B');
    await at.page.locator('.kept').getByRole('button', { name: 'Forget' }).click();
    await at.page.getByText('What was kept beyond a reload is forgotten.').waitFor();
    await at.page.reload();
    await at.isReady();
    await at.begin('The same words twice');
    await at.conversation('A').getByText('tokens from memory').waitFor();
    expect((await at.found('A')).found).toBe(0);
    await at.isDone('A', 'B');
  });

  test('scratch shows what it saves, side by side, and can be switched off', async () => {
    await at.tab('Scratch');
    await at.page.getByRole('button', { name: 'Compare off and on' }).click();
    const { figures } = await at.compared('Two requests on one long beginning');
    const [pagesOff, pagesOn] = await figures('Pages of windows in use at most');
    // Of 128 tokens back from the end each block keeps its page; of the others half are slots, as two layers have windows.
    expect(pagesOff).toBeGreaterThan(20);
    expect(pagesOn).toBeLessThan(0.8 * pagesOff);
    const [found, foundOn] = await figures('Found by the second, tokens');
    expect(foundOn).toBe(found);
    expect(found).toBeGreaterThan(300);

    // Neither begins as anything that is kept. The longer step alone saves nothing.
    const [withoutScratch, withScratch] = [
      at.page.getByRole('radio', { name: '512' }),
      at.page.getByRole('switch', { name: /^Scratch/ }),
    ];
    const [text, , other] = STRANGERS.conversations;
    for (const [control, pieces, isSaving] of [
      [withoutScratch, text, false],
      [withScratch, other, true],
    ] as const) {
      await control.click();
      // Another engine, in which nothing has been in use yet.
      await expect.poll(() => at.mostInUse('Window of 128')).toBe(0);
      const blocks = Math.ceil((await at.say(pieces.join('').slice(0, 1100))) / 16);
      expect(blocks).toBeGreaterThan(15);
      // The last token is read by itself.
      const most = await at.mostInUse('Window of 128');
      if (isSaving) expect(most).toBeLessThan(0.85 * blocks);
      else expect(most).toBeGreaterThanOrEqual(blocks - 2);
    }
  });

  test('a policy shows what it costs, side by side, and then holds for the whole page', async () => {
    await at.tab('Policies');
    for (const role of ['ssm state', 'conv state']) await at.page.getByLabel(`Policy of every ${role}`).selectOption('private');
    await at.page.getByRole('button', { name: 'Compare' }).click();
    const { figures } = await at.compared('Two requests, one beginning');
    const [foundBefore, foundAfter] = await figures('Found by the second');
    expect(foundBefore).toBeGreaterThan(200);
    expect(foundAfter).toBe(0);
    const [leftBefore, leftAfter] = await figures('Left for others');
    expect(leftAfter).toBeLessThan(leftBefore);
    await at.page.getByRole('button', { name: 'Use these' }).click();
    await at.page.getByRole('heading', { name: 'Recurrent state' }).first().waitFor();
    await expect
      .poll(() => at.page.locator('.pool', { hasText: 'Recurrent state' }).first().locator('.tag').textContent())
      .toBe('private');
    await at.begin('The same words twice');
    await at.isDone('C', 'D');
    expect((await at.found('D')).found).toBe(0);
  });
});
