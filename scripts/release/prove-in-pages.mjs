import { cpSync } from 'node:fs';
import { serveFolder } from '../../apps/playground/serve/serve-folder.mjs';
import { importSource } from '../run/source-module.mjs';
import { differences } from './said.mjs';

/** Milliseconds. A software device on a busy machine takes its time. */
const PATIENCE_MS = 120_000;

/** What the page answers in every browser and from every bundler. */
const ANSWER = {
  reused: { host: 100, gpu: 100 },
  kind: 'opfs',
  page: [1, 2, 3],
  classes: ['function', 'function', 'function'],
};

/**
 * Builds one page with Vite and with webpack, for production, and asks both in the browser of the tests. Problems, one sentence each.
 *
 * @param {import('./consumer.mjs').Consumer} consumer
 */
export async function proveInPages(consumer) {
  const bundlers = { Vite: buildWithVite, webpack: buildWithWebpack };
  const problems = [];
  for (const [name, build] of Object.entries(bundlers)) {
    const complaints = await build(consumer, name);
    problems.push(...complaints.map((complaint) => `${name} says of the page: ${complaint}`));
  }
  cpSync(consumer.installed('bufferwise/dist/whaler-1m'), consumer.path('site/model'), { recursive: true });
  const answers = await askPages(consumer.path('site'), Object.keys(bundlers));
  return [...problems, ...answers.flatMap(({ name, answer }) => complaintsOf(`the page built with ${name}`, answer))];
}

function complaintsOf(what, answer) {
  if (answer.error !== undefined) return [`${what} failed: ${answer.error}`];
  const { answers, stored, ...rest } = answer;
  const [first, second] = answers;
  return [
    ...differences(what, rest, ANSWER),
    ...differences(`${what}, of two equal prompts,`, second.tokens, first.tokens),
    ...(first.reused === 0 && second.reused > 0
      ? []
      : [`${what} reused ${first.reused} and ${second.reused} tokens of two equal prompts`]),
    ...(stored > 0 ? [] : [`${what} kept no page in files of the browser`]),
  ];
}

async function askPages(site, names) {
  const { chromium } = await import('playwright-core');
  const { chromiumForTests } = await importSource('internal/webgpu-node', 'src/index.ts');
  const server = await serveFolder(site);
  const browser = await chromium.launch(await chromiumForTests());
  try {
    const answers = [];
    // One after the other: a software device takes all cores, and files of an origin are one page's at a time.
    for (const name of names) answers.push({ name, answer: await askPage(browser, new URL(`${name}/`, server.url).href) });
    return answers;
  } finally {
    await browser.close();
    await server.close();
  }
}

async function askPage(browser, address) {
  const context = await browser.newContext();
  const page = await context.newPage();
  const failed = new Promise((resolve) => page.on('pageerror', (error) => resolve({ error: `uncaught ${error.stack}` })));
  const asked = (async () => {
    await page.goto(address);
    await page.waitForFunction(() => window.answer !== undefined, undefined, { timeout: PATIENCE_MS });
    return page.evaluate(() => window.answer);
  })();
  try {
    return await Promise.race([asked, failed]);
  } catch (error) {
    return { error: error.message };
  } finally {
    await context.close();
  }
}

async function buildWithVite(consumer, name) {
  const { build, createLogger } = await import('vite');
  const complaints = [];
  const told = (message) => complaints.push(message);
  const customLogger = { ...createLogger('silent'), warn: told, warnOnce: told, error: told };
  await build({
    root: consumer.path('page'),
    base: './',
    configFile: false,
    logLevel: 'warn',
    customLogger,
    worker: { format: 'es' },
    build: { target: 'es2022', outDir: consumer.path('site', name), emptyOutDir: true, chunkSizeWarningLimit: 10_000 },
  });
  return complaints;
}

async function buildWithWebpack(consumer, name) {
  const { default: webpack } = await import('webpack');
  const path = consumer.path('site', name);
  const stats = await new Promise((resolve, reject) => {
    const config = {
      mode: 'production',
      context: consumer.path('page'),
      entry: './page.js',
      output: { path, filename: 'page.js', publicPath: 'auto', module: true },
      experiments: { outputModule: true },
      performance: { hints: false },
    };
    webpack(config, (error, done) => (error ? reject(error) : resolve(done)));
  });
  cpSync(consumer.path('page/index.html'), consumer.path('site', name, 'index.html'));
  const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
  return [...errors, ...warnings].map(({ message, moduleName }) => `${moduleName ?? 'page'}: ${message}`);
}
