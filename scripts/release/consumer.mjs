import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { CommandError, run } from '../run/process.mjs';
import { indented } from '../run/terminal.mjs';
import { root } from '../run/workspace.mjs';

const PROJECTS = join(root, 'scripts/release/projects');
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
const npx = process.platform === 'win32' ? 'npx.cmd' : 'npx';

/**
 * A project outside of the workspace in which packed packages, and nothing else of the repository, were installed by npm. The projects that use them lie in
 * it, so that one installation serves them all.
 */
export class Consumer {
  /** Absolute. */
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'bufferwise-release-')));

  /**
   * @param {import('./pack.mjs').Pack[]} packs
   * @throws {CommandError} when npm cannot install them
   */
  async install(packs) {
    cpSync(PROJECTS, this.folder, { recursive: true });
    const dependencies = Object.fromEntries(packs.map(({ name, tarball }) => [name, `file:${tarball}`]));
    // A package that names another one means the tarball, too, and never what a registry may have by that name.
    const overrides = Object.fromEntries(packs.map(({ name }) => [name, `$${name}`]));
    const manifest = { name: 'consumer', version: '1.0.0', private: true, type: 'module', dependencies, overrides };
    writeFileSync(join(this.folder, 'package.json'), JSON.stringify(manifest, null, 2));
    const args = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts', '--prefer-offline'];
    const { code, output } = await this.run(npm, args);
    if (code !== 0) throw new CommandError(`npm cannot install the packed packages:\n\n${indented(output)}`, code);
  }

  path(...parts) {
    return join(this.folder, ...parts);
  }

  /** Where a package of the consumer lies. */
  installed(name) {
    return this.path('node_modules', name);
  }

  /** Whether a package lies there itself, and not a link to where it was made. */
  isReal(name) {
    const folder = this.installed(name);
    return existsSync(folder) && !lstatSync(folder).isSymbolicLink() && realpathSync(folder) === folder;
  }

  manifestOf(name) {
    return JSON.parse(readFileSync(join(this.installed(name), 'package.json'), 'utf8'));
  }

  /**
   * Puts a package beside the packed ones that a person would install besides, of the version that the repository has: it is not what is proven here, and
   * would be downloaded again.
   *
   * @param {string} name
   * @param {string} from the folder of the workspace package that has it
   */
  add(name, from) {
    const link = this.installed(name);
    if (existsSync(link)) return;
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(realpathSync(join(root, from, 'node_modules', name)), link, 'junction');
  }

  /** Runs a file of the consumer on this Node. */
  node(args, options) {
    return this.run(process.execPath, args, options);
  }

  /** Runs the installed command as a person does who has not installed it globally. */
  npx(args) {
    return this.run(npx, ['--no-install', ...args]);
  }

  run(command, args, { env = {} } = {}) {
    return run(command, args, {
      cwd: this.folder,
      capture: true,
      env: { NODE_NO_WARNINGS: '1', NODE_OPTIONS: undefined, ...env },
    });
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
