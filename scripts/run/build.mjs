import { dependencies } from './dependencies.mjs';
import { CommandError, runPnpm } from './process.mjs';
import { indented, progress } from './terminal.mjs';

/** `build`: every package into its dist folder. */
export async function build() {
  const { step } = progress(2);
  await step('dependencies', dependencies);
  await step('build', () => buildPackages());
  return 0;
}

/**
 * Builds packages and what they depend on; what has not changed comes from the cache.
 *
 * @param {string[]} [filters] names or globs of turbo's `--filter`; all packages without one
 */
export async function buildPackages(filters = []) {
  const args = ['exec', 'turbo', 'run', 'build', '--output-logs=errors-only', ...filters.map((filter) => `--filter=${filter}`)];
  const { code, output } = await runPnpm(args, { capture: true });
  if (code !== 0) throw new CommandError(`The build failed:\n\n${indented(output)}`, code);
  const [, cached, total] = /Cached:\s+(\d+) cached, (\d+) total/.exec(output) ?? [];
  if (total === undefined) return {};
  return { note: cached === total ? `${total} packages up to date` : `${total} packages, ${total - cached} of them anew` };
}
