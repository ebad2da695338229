import { statSync } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { buildPackages } from './build.mjs';
import { dependencies } from './dependencies.mjs';
import { CommandError } from './process.mjs';
import { failure, faint, indented, progress, say, strong } from './terminal.mjs';
import { publishedPackages, root } from './workspace.mjs';

const USAGE = 'Usage: npm run release -- [--dry-run]';

/**
 * `release`: packs every published package, proves the tarballs in projects outside of the workspace, and publishes those that are not published yet.
 * With `--dry-run` the versions are those that pending changesets come to, and nothing is published or changed.
 */
export async function release(args) {
  const dryRun = args[0] === '--dry-run';
  if (args.length > Number(dryRun)) throw new CommandError(USAGE);
  const { step } = progress(dryRun ? 4 : 5);
  await step('dependencies', dependencies);
  // Only now: they use what has just been installed.
  const { packPackages } = await import('../release/pack.mjs');
  const { prove } = await import('../release/prove.mjs');
  const { notToPublish, publish, tag } = await import('../release/publish.mjs');

  await step('build', () => buildPackages(publishedPackages().map(({ name }) => name)));
  const packs = await step('packing', packPackages);
  const pending = dryRun ? undefined : notToPublish(packs, publishedPackages());
  if (pending !== undefined) throw new CommandError(pending);
  const problems = await step('proof', async () => {
    const value = await prove(packs);
    return { note: value.length === 0 ? 'they work outside of the workspace' : failure(`${value.length} do not work`), value };
  });
  if (problems.length > 0) throw new CommandError(`This is no release:\n\n${indented(problems.join('\n'))}`);

  if (dryRun) {
    say(`\n${strong('The next release')}`);
    for (const { name, manifest, tarball } of packs) {
      say(`  ${name} ${manifest.version} ${faint(`${Math.ceil(statSync(tarball).size / 1000)} kB, ${basename(tarball)}`)}`);
    }
    say(`\nThe tarballs are in ${relative(root, dirname(packs[0].tarball))}. Nothing was published.`);
    return 0;
  }
  await step('publishing', () => publish(packs));
  return tag();
}
