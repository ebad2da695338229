import { readdirSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { serveFolder } from '/work/wt/play/apps/playground/serve/serve-folder.mjs';
export async function open(opts = {}) {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(os.homedir(), '.cache'), 'bufferwise');
  const dirs = readdirSync(cache);
  const exe = join(
    cache,
    dirs.find((d) => /^chromium-\d/.test(d)),
    'chromium',
  );
  const libs = dirs.find((d) => d.startsWith('chromium-libraries'));
  const fonts = dirs.find((d) => d.startsWith('chromium-fonts'));
  const env = { ...process.env };
  if (libs) env.LD_LIBRARY_PATH = join(cache, libs, 'lib');
  if (fonts) env.FONTCONFIG_PATH = join(cache, fonts);
  const browser = await chromium.launch({
    executablePath: exe,
    env,
    args: [
      '--headless',
      '--no-sandbox',
      '--no-zygote',
      '--disable-dev-shm-usage',
      '--enable-unsafe-webgpu',
      '--use-webgpu-adapter=swiftshader',
      '--enable-features=Vulkan',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  const server = await serveFolder('/work/wt/play/apps/playground/dist');
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'dark', ...opts });
  const page = await context.newPage();
  page.on('console', (m) => {
    if (m.type() !== 'log') console.log('console', m.type(), m.text());
  });
  page.on('pageerror', (e) => console.log('pageerror', e.message));
  await page.goto(server.url);
  return {
    browser,
    server,
    page,
    context,
    close: async () => {
      await browser.close();
      await server.close();
    },
  };
}
