import { changeset } from './changeset.mjs';
import { contents } from './contents.mjs';
import { docs } from './docs.mjs';
import { errorCodes } from './error-codes.mjs';
import { exportsOfPackages } from './exports.mjs';
import { imports } from './imports.mjs';
import { release } from './release.mjs';
import { size } from './size.mjs';
import { style } from './style.mjs';
import { types } from './types.mjs';
import { unused } from './unused.mjs';
import { words } from './words.mjs';

/**
 * A check looks at one thing. `run` returns what it found: `problems` is what the person must see (empty when all is well),
 * `remedy` is what they do about it, `note` says what was looked at.
 *
 * @typedef {{ name: string, about: string, packs?: boolean, run(context: { packs: import('../release/pack.mjs').Pack[] }):
 *   Promise<{ problems: string, remedy: string, note?: string }> }} Check
 */

/** The long ones first, so that they overlap. `packs` marks those that look at packed packages. */
export const checks = [
  docs,
  types,
  release,
  exportsOfPackages,
  contents,
  size,
  unused,
  imports,
  style,
  errorCodes,
  changeset,
  words,
];
