import { test } from 'vitest';
import { managerRuns } from '../support/manager-run.ts';
import { patience, tryRuns } from '../support/random-run.ts';

/** Random managers tried in a run of this file; each lives through twenty to sixty operations. */
const RUNS = Number(process.env.BUFFERWISE_PROPERTY_RUNS ?? 60);

for (const run of managerRuns) test(run.sentence, () => tryRuns(run, RUNS), patience(RUNS));
