import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { buildPackages } from './build.mjs';
import { dependencies } from './dependencies.mjs';
import { CommandError, runTool } from './process.mjs';
import { servers } from './servers.mjs';
import { softwareGpu } from './software-gpu.mjs';
import { duration, failure, faint, progress, say, strong, success } from './terminal.mjs';
import { countTests, failures } from './test-report.mjs';
import { cacheFolder, root, sourceFiles } from './workspace.mjs';

/**
 * The runs of each suite. A run is one vitest project, on the source, or with `BUFFERWISE_TEST=built` on what the packages ship. Files of those that
 * are `parallel` share nothing, and run on all cores; vitest alone would leave one to itself. A software GPU takes all cores for one file already.
 */
const suites = {
  unit: [
    { title: 'unit tests', project: 'unit', parallel: true },
    { title: 'unit tests on the built packages', project: 'unit', built: true, parallel: true },
  ],
  gpu: [{ title: 'GPU tests in Node', project: 'gpu' }],
  browser: [{ title: 'GPU tests in Chromium', project: 'browser' }],
  page: [{ title: 'tests of the playground in Chromium', project: 'page' }],
  services: [{ title: 'tests against real services', project: 'services', suffix: '.services.test.ts' }],
};

/** What the tests of services start, by the names of internal/services. */
const SERVERS = ['redis', 'nats'];

/** A suite that takes this long hangs. It is ended and counts as failed. */
const SUITE_LIMIT_MS = 30 * 60_000;

const needsGpu = (run) => run.project === 'gpu' || run.project === 'browser';

/**
 * `test [suite] [arguments of vitest]`: ends with a line `N passed, N failed` over all suites.
 *
 * @returns {Promise<number>} 0 when something ran and nothing failed, and when the suite asked for is known to be empty
 */
export async function test(args) {
  const named = args[0] !== undefined && Object.hasOwn(suites, args[0]);
  if (!named && args[0] !== undefined && !args[0].startsWith('-')) {
    throw new CommandError(`There is no suite "${args[0]}". The suites are ${Object.keys(suites).join(', ')}.`);
  }
  const runs = named ? suites[args[0]] : Object.values(suites).flat();
  const vitestArgs = named ? args.slice(1) : args;

  const built = runs.some((run) => run.built);
  const gpu = runs.some(needsGpu);
  const services = runs.some((run) => run.project === 'services');
  const { step, announce } = progress(1 + Number(built) + Number(gpu) + Number(services) + runs.length);
  await step('dependencies', dependencies);
  const buildFailure = built ? await step('build', buildForTests).catch(keepUnlessInterrupted) : undefined;
  if (gpu) await step('software GPU', softwareGpu);
  const missing = services ? await step('servers', () => servers(SERVERS)) : [];

  const outcomes = [];
  let numWithoutTests = 0;
  for (const run of runs) {
    announce(run.title);
    if (run.suffix !== undefined && sourceFilesWith(run.suffix).length === 0) {
      say(faint(`There are no such tests yet (no *${run.suffix} in the repository).`));
      numWithoutTests++;
      continue;
    }
    const started = performance.now();
    const unbuilt = run.built && buildFailure !== undefined;
    if (unbuilt) say(failure(buildFailure.message));
    const counts = unbuilt ? { passed: 0, failed: 1, failures: [] } : await runSuite(run, vitestArgs);
    outcomes.push({ title: run.title, ...counts, milliseconds: performance.now() - started });
  }
  for (const sentence of missing) say(failure(sentence));
  const code = conclude(outcomes);
  return numWithoutTests === runs.length ? 0 : code;
}

const buildForTests = () => buildPackages(['./packages/*']);

/** A build that fails is one failure of the suite that needs it; the others can still say what they know. */
function keepUnlessInterrupted(error) {
  if (!(error instanceof CommandError) || error.exitCode === 130) throw error;
  return error;
}

const sourceFilesWith = (suffix) =>
  ['packages', 'apps', 'internal', 'examples'].flatMap((part) => sourceFiles(part, (path) => path.endsWith(suffix)));

async function runSuite({ project, built, parallel }, vitestArgs) {
  const report = join(cacheFolder, 'test', `${project}${built ? '-built' : ''}.json`);
  mkdirSync(join(cacheFolder, 'test'), { recursive: true });
  rmSync(report, { force: true });
  const args = [
    'run',
    '--project',
    project,
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...(parallel ? [`--maxWorkers=${availableParallelism()}`] : []),
    ...vitestArgs,
    // Words of the person choose tests: not every suite has some of those. A whole suite that finds none is broken.
    ...(vitestArgs.length > 0 ? ['--passWithNoTests'] : []),
  ];
  const env = { BUFFERWISE_TEST: built ? 'built' : 'source' };
  const { code, tooLong } = await runTool('vitest', args, { cwd: root, env, limitMs: SUITE_LIMIT_MS });
  if (tooLong) say(failure(`The suite was ended: it had not finished after ${duration(SUITE_LIMIT_MS)}.`));
  const results = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : undefined;
  return { ...countTests(results, code), failures: failures(results, root) };
}

function conclude(outcomes) {
  const passed = outcomes.reduce((sum, outcome) => sum + outcome.passed, 0);
  const failed = outcomes.reduce((sum, outcome) => sum + outcome.failed, 0);
  say(`\n${strong('Tests')}`);
  for (const outcome of outcomes) {
    const mark = outcome.failed > 0 ? failure('failed') : success('passed');
    say(
      `  ${mark}  ${outcome.title}: ${outcome.passed} passed, ${outcome.failed} failed ${faint(`(${duration(outcome.milliseconds)})`)}`,
    );
  }
  for (const { title, failures } of outcomes) {
    for (const line of failures) say(`FAILED ${title}: ${line}`);
  }
  if (passed + failed === 0) say(failure('  No test ran.'));
  say(`\n${passed} passed, ${failed} failed`);
  return failed === 0 && passed > 0 ? 0 : 1;
}
