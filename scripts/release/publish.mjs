import { CommandError, run, runTool } from '../run/process.mjs';
import { indented } from '../run/terminal.mjs';

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';

/**
 * Why packs are not what the repository is at: their versions come from changesets that nobody has used up yet. Undefined where they may be published.
 *
 * @param {Pick<import('./pack.mjs').Pack, 'name' | 'manifest'>[]} packs
 * @param {{ name: string, manifest: { version: string } }[]} packages of the repository
 */
export function notToPublish(packs, packages) {
  const ahead = packs.filter(
    ({ name, manifest }) => packages.find((each) => each.name === name)?.manifest.version !== manifest.version,
  );
  if (ahead.length === 0) return undefined;
  const [{ name, manifest }] = ahead;
  return `Changesets are pending: ${name} would be ${manifest.version}. Use them up with \`npx changeset version\`, commit that, and release then; \`npm run release -- --dry-run\` shows the release before.`;
}

/** Packs in an order in which each comes after those it depends on, so that whatever is published can be installed. */
export function inOrder(packs) {
  const ordered = [];
  const add = (pack) => {
    if (ordered.includes(pack)) return;
    for (const name of Object.keys(pack.manifest.dependencies ?? {})) {
      const other = packs.find((each) => each.name === name);
      if (other !== undefined) add(other);
    }
    ordered.push(pack);
  };
  for (const pack of packs) add(pack);
  return ordered;
}

/** Publishes the tarballs whose version is not there yet, so that a release that was cut off goes on. In a workflow, with a statement of where they come from. */
export async function publish(packs) {
  const provenance = process.env.ACTIONS_ID_TOKEN_REQUEST_URL === undefined ? [] : ['--provenance'];
  let numPublished = 0;
  for (const { name, manifest, tarball } of inOrder(packs)) {
    const asked = await run(npm, ['view', `${name}@${manifest.version}`, 'version'], { capture: true });
    if (asked.code === 0 && asked.output.trim() !== '') continue;
    const { code, output } = await run(npm, ['publish', tarball, '--access', 'public', ...provenance], { capture: true });
    if (code !== 0)
      throw new CommandError(`${name} could not be published; what came before it is:\n\n${indented(output)}`, code);
    numPublished++;
  }
  return { note: `${numPublished} packages, ${packs.length - numPublished} were there` };
}

/** Tags the commit with every version, and says so in the words that the workflow's action reads. @returns the exit code */
export async function tag() {
  const { code } = await runTool('@changesets/cli', ['tag']);
  return code;
}
