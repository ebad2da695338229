import { test } from 'vitest';
import { forkRuns } from '../support/fork-run.ts';
import { patience, tryRuns } from '../support/random-run.ts';

/** Random managers tried in a run of this file; each lives through twenty to sixty operations. */
const RUNS = Number(process.env.BUFFERWISE_PROPERTY_RUNS ?? 40);

for (const run of forkRuns) test(run.sentence, () => tryRuns(run, RUNS), patience(RUNS));
