import { expect, test } from 'vitest';
import { forkRuns } from '../support/fork-run.ts';
import { managerRuns } from '../support/manager-run.ts';
import { tryRuns } from '../support/random-run.ts';

/**
 * Operations of a long run: `BUFFERWISE_LONG_RUN=1000000 npx vitest run --project unit packages/cache-manager/test/properties/long-run`.
 * Without it a few thousand are done, each run with a few seeds.
 */
const OPERATIONS = Number(process.env.BUFFERWISE_LONG_RUN ?? 3000);
/** First seed; the next ones follow it. */
const SEED = Number(process.env.BUFFERWISE_LONG_RUN_SEED ?? 1);
/** Lives of a manager with one seed. */
const LIVES = 10;
/** Operations between two lines that tell how far it is. */
const REPORT_EVERY = 20_000;
/** Milliseconds: no limit, as whoever asks for many operations knows why. */
const TIMEOUT = 0;

const runs = [...managerRuns, ...forkRuns];

test(
  `${OPERATIONS} random operations, over as many seeds as they take, keep every invariant and every page`,
  async () => {
    const began = Date.now();
    let done = 0;
    let seed = SEED;
    let report = REPORT_EVERY;
    const counts = runs.map(() => 0);
    while (done < OPERATIONS) {
      for (const [index, run] of runs.entries()) {
        await tryRuns(run, LIVES, {
          seed,
          tell: () => {
            done++;
            counts[index]++;
          },
        });
      }
      seed++;
      if (done < report) continue;
      report += REPORT_EVERY;
      const seconds = ((Date.now() - began) / 1000).toFixed(0);
      process.stderr.write(`${done} operations (${counts.join(' + ')}), seeds ${SEED} to ${seed - 1}, ${seconds} s\n`);
    }
    expect(Math.min(...counts), 'operations of the run that was tried least').toBeGreaterThan(0);
  },
  TIMEOUT,
);
