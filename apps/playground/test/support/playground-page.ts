import { chromiumForTests } from '@bufferwise-internal/webgpu-node';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from 'playwright-core';
import { expect, inject } from 'vitest';

/** Milliseconds. A software device on a busy machine takes its time. */
const PATIENCE_MS = 120_000;

/** A browser as people have it: with WebGPU, here on the software device. */
export async function launchBrowser(): Promise<Browser> {
  return chromium.launch(await chromiumForTests());
}

/** The playground in a page of its own, and what went wrong in it. */
export class PlaygroundPage {
  readonly page: Page;
  /** Whatever the console says that is no plain talk, and every address that was asked besides the app's own. */
  readonly problems: string[] = [];
  /** Every address that was asked. */
  readonly asked = new Set<string>();

  private constructor(page: Page) {
    this.page = page;
    page.setDefaultTimeout(PATIENCE_MS);
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) this.problems.push(`${message.type()}: ${message.text()}`);
    });
    page.on('pageerror', (error) => this.problems.push(`uncaught: ${error.message}`));
    page.on('request', (request) => {
      this.asked.add(request.url());
      if (!request.url().startsWith(inject('playgroundUrl'))) this.problems.push(`asked elsewhere: ${request.url()}`);
    });
  }

  static async open(context: BrowserContext): Promise<PlaygroundPage> {
    const opened = new PlaygroundPage(await context.newPage());
    await opened.page.goto(inject('playgroundUrl'));
    return opened;
  }

  /** The playground once its first engine is there. */
  static async ready(browser: Browser, options: BrowserContextOptions = {}): Promise<PlaygroundPage> {
    const opened = await PlaygroundPage.open(await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options }));
    await opened.isReady();
    return opened;
  }

  async isReady(): Promise<void> {
    await this.page.getByRole('heading', { name: 'Conversations' }).waitFor();
  }

  conversation(name: string): Locator {
    return this.page.getByRole('article', { name: `Conversation ${name}` });
  }

  /** Short answers of the most likely words. */
  async answerShortly(tokens = 8): Promise<void> {
    await this.page.getByLabel('Length of answers').selectOption(String(tokens));
    await this.page.getByLabel('Choice of words').selectOption('0');
  }

  async begin(preset: string): Promise<void> {
    await this.page.getByRole('button', { name: preset }).click();
  }

  async isDone(...names: string[]): Promise<void> {
    for (const name of names) await this.conversation(name).getByText('Done').waitFor();
  }

  /** Says something in a conversation of its own, and waits for the answer. @returns its tokens */
  async say(text: string): Promise<number> {
    await this.page.getByRole('button', { name: 'New', exact: true }).click();
    const conversation = this.page.locator('.conversation').last();
    await conversation.getByRole('textbox').fill(text);
    await this.page.keyboard.press('Enter');
    await conversation.getByText('Done').waitFor();
    const [, tokens] = /of (\d+) tokens from memory/.exec((await conversation.textContent()) ?? '') ?? [];
    return Number(tokens);
  }

  /** Tokens that a conversation found in memory, of how many. */
  async found(name: string): Promise<{ found: number; of: number }> {
    const text = (await this.conversation(name).getByText('tokens from memory').textContent()) ?? '';
    const [, found, of] = /^(\d+) of (\d+) tokens from memory/.exec(text) ?? [];
    return { found: Number(found), of: Number(of) };
  }

  /** Pages in use of a pool. */
  async pagesOf(pool: string, tier = 0): Promise<number> {
    const text = await this.page
      .locator('.tier')
      .nth(tier)
      .locator('.pool', { has: this.page.getByRole('heading', { name: pool }) })
      .locator('.use')
      .textContent();
    return Number(text?.split(' ')[0].replaceAll(',', ''));
  }

  /** The most pages of a pool on the device that were in use at a time; 0 as long as there were none. */
  async mostInUse(pool: string): Promise<number> {
    const most = this.page.locator('.pool', { has: this.page.getByRole('heading', { name: pool }) }).locator('.most');
    return (await most.count()) === 0 ? 0 : Number.parseInt((await most.first().textContent()) ?? '', 10);
  }

  /** Waits for a comparison whose answers are the same; `figures` are both sides of a row. */
  async compared(title: string): Promise<{ figures: (row: string) => Promise<number[]> }> {
    const table = this.page.getByRole('table', { name: title });
    await table.waitFor();
    await this.page.getByText('Both answer with the same words').waitFor();
    const figures = async (row: string) =>
      (await table.getByRole('row', { name: row }).getByRole('cell').allTextContents()).map((text) => Number.parseFloat(text));
    return { figures };
  }

  async tab(name: string): Promise<void> {
    await this.page.getByRole('tab', { name }).click();
  }

  /** Closes it, and fails where something went wrong in it. */
  async close(): Promise<void> {
    await this.page.context().close();
    expect(this.problems).toEqual([]);
  }
}
