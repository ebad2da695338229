import { hasServer, SeparateNetwork } from '@bufferwise-internal/services';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { answersAlone, ask, end, figures, hasRead, holdsNothing, knows, promptOf } from '../support/served-client.ts';
import { ServedCluster } from '../support/served-cluster.ts';
import { LLAMA } from '../support/test-server.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

const whyNot = SeparateNetwork.whyNot();
if (whyNot !== undefined) console.info(`Skipped: workers on networks of their own; ${whyNot}.`);

const PROMPTS = ['one', 'two', 'three', 'four', 'five', 'six'].map(promptOf);

describe.runIf(hasServer('nats') && whyNot === undefined)(
  'a process that reads on another network than the one that answers',
  () => {
    const ends: (() => unknown)[] = [];
    afterEach(async () => {
      for (const end of ends.splice(0).reverse()) await end();
    });

    it('moves prompts whole over a wire that loses packets', async () => {
      const network = SeparateNetwork.open();
      ends.push(() => network.close());
      const cluster = await ServedCluster.start({ model: LLAMA, host: network.here });
      ends.push(() => cluster.stop());
      const answerer = await cluster.decode('--pages', `${network.here}:0`);
      const expected = await answersAlone(answerer, PROMPTS);
      const reader = await cluster.serve(['--role', 'prefill', '--host', network.there], network.runner);
      await knows(answerer, { prefill: 1 });
      const how = network.impair();
      let asked = 0;
      for (const prompt of PROMPTS) {
        expect(await ask(answerer, prompt)).toEqual(expected.get(prompt));
        asked++;
        if (network.lost > 0) break;
      }
      console.info(`prompts moved: ${asked}, packets lost: ${network.lost}, over a wire with ${how}`);
      expect(network.lost).toBeGreaterThan(0);
      // TCP brings again what is lost: nobody has to ask for a prompt again.
      await hasRead(reader, asked);
      expect((await figures(answerer)).get('prompt_move_retries_total')).toBe(0);
      for (const each of [answerer, reader]) await holdsNothing(each);
      expect(await Promise.all([end(reader), end(answerer)])).toEqual([0, 0]);
    });
  },
);
