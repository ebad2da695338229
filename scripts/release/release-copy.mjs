import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { CommandError, runTool } from '../run/process.mjs';
import { indented } from '../run/terminal.mjs';
import { cacheFolder, publishedPackages, root } from '../run/workspace.mjs';

/** What a release is made from besides the packages. */
const TOP_FILES = ['LICENSE', 'package.json', 'pnpm-workspace.yaml'];
/** What a package is made from besides its `package.json`. */
const PACKAGE_FILES = ['README.md', 'CHANGELOG.md', 'dist'];

/**
 * Copies what people install, as built, to where it may be changed, and has changesets write the versions and changelogs of the next release
 * there. Without a pending changeset versions stay as they are. What only development needs stands in no manifest of the copy.
 *
 * @returns {Promise<string>} the absolute folder of the copy, which has the packages where the repository has them
 */
export async function makeReleaseCopy() {
  const copy = join(cacheFolder, 'release');
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(copy, { recursive: true });
  for (const file of TOP_FILES) cpSync(join(root, file), join(copy, file));
  cpSync(join(root, '.changeset'), join(copy, '.changeset'), { recursive: true });

  const packages = publishedPackages();
  for (const { folder, manifest } of packages) {
    mkdirSync(join(copy, folder), { recursive: true });
    for (const file of PACKAGE_FILES.filter((each) => existsSync(join(root, folder, each)))) {
      cpSync(join(root, folder, file), join(copy, folder, file), { recursive: true });
    }
    writeManifest(join(copy, folder), shipped(manifest, folder));
  }
  await writeVersions(copy);
  for (const { folder, manifest } of packages) linkDependencies(copy, folder, manifest, packages);
  return copy;
}

/** A manifest as it is published, but for versions: pnpm turns those of the workspace and the catalog into real ones when it packs. */
function shipped({ devDependencies: _dev, scripts: _scripts, ...manifest }, folder) {
  const repository = repositoryUrl();
  return repository === undefined ? manifest : { ...manifest, repository: { type: 'git', url: repository, directory: folder } };
}

/** Where a workflow of GitHub runs, which is what its statement of provenance names; undefined elsewhere. */
function repositoryUrl() {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = process.env;
  return server && name ? `git+${server}/${name}.git` : undefined;
}

const writeManifest = (folder, manifest) => writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);

async function writeVersions(copy) {
  const { code, output } = await runTool('@changesets/cli', ['version'], { cwd: copy, capture: true });
  if (code !== 0) throw new CommandError(`The versions of the release cannot be computed:\n\n${indented(output)}`, code);
}

/** What pnpm reads the versions of the workspace from. */
function linkDependencies(copy, folder, manifest, packages) {
  for (const name of Object.keys(manifest.dependencies ?? {})) {
    const target = packages.find((each) => each.name === name);
    if (target === undefined) continue;
    const link = join(copy, folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(relative(dirname(link), join(copy, target.folder)), link, 'junction');
  }
}

/** What the copy says of a package. @returns {{ manifest: Record<string, any>, changelog: string | undefined }} */
export function readCopy(copy, folder) {
  const changelog = join(copy, folder, 'CHANGELOG.md');
  return {
    manifest: JSON.parse(readFileSync(join(copy, folder, 'package.json'), 'utf8')),
    changelog: existsSync(changelog) ? readFileSync(changelog, 'utf8') : undefined,
  };
}
