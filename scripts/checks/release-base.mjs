import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../run/process.mjs';
import { root } from '../run/workspace.mjs';

/**
 * The commit that changes are counted from: where this branch left `origin/main`, or, on main itself, the last release's tag.
 * Undefined without git, and in a repository that knows neither.
 *
 * @returns {Promise<{ commit: string, label: string } | undefined>}
 */
export async function releaseBase() {
  if (!existsSync(join(root, '.git'))) return undefined;
  const head = await git('rev-parse', 'HEAD');
  const fork = await git('merge-base', 'HEAD', 'origin/main');
  if (fork !== undefined && fork !== head) return { commit: fork, label: 'origin/main' };
  const tag = await git('describe', '--tags', '--abbrev=0', '--match', '@bufferwise/*');
  const commit = tag && (await git('rev-parse', `${tag}^{commit}`));
  if (commit !== undefined) return { commit, label: tag };
  return fork && { commit: fork, label: 'origin/main' };
}

/** Paths that differ between a commit and the files as they are now, those that git does not know yet included. */
export async function changedSince(commit) {
  const known = (await git('diff', '--name-only', commit)) ?? '';
  const fresh = (await git('ls-files', '--others', '--exclude-standard')) ?? '';
  return [...known.split('\n'), ...fresh.split('\n')].filter((path) => path !== '');
}

/** The content of a file in a commit; undefined where it did not exist. */
export const fileAt = (commit, path) => git('show', `${commit}:${path}`);

async function git(...args) {
  const { code, output } = await run('git', args, { capture: true }).catch(() => ({ code: 1, output: '' }));
  return code === 0 ? output.trim() : undefined;
}
