import { open } from './zz-shot.mjs';

const t = Date.now();
const s = await open();
const p = s.page;
let last = '';
for (;;) {
  const x = await p.evaluate(() => document.querySelector('main h2')?.textContent);
  if (x !== last) {
    console.log(Date.now() - t, x);
    last = x;
  }
  if (x === 'Conversations') break;
  await p.waitForTimeout(20);
}
await s.close();
