import { spawnSync } from 'node:child_process';

/** What a wire does to what goes over it. */
const BAD = ['netem', 'delay', '4ms', '3ms', 'loss', '8%', 'duplicate', '8%', 'reorder', '25%', '50%'];
/** For kernels without netem: a slow wire with a short queue, which loses what does not fit. */
const NARROW = ['tbf', 'rate', '4mbit', 'burst', '3kb', 'limit', '6kb'];

/**
 * A network of its own beside that of this process, as another machine has one, and a wire between them that can be made a bad one. Needs Linux, root,
 * and iproute2.
 */
export class SeparateNetwork {
  static #count = 0;
  /** Addresses of the two ends of the wire: this process's, and that of who runs over there. */
  readonly here: string;
  readonly there: string;
  readonly #name: string;
  readonly #wire: string;

  private constructor() {
    const ordinal = SeparateNetwork.#count++;
    this.#name = `bufferwise-${process.pid}-${ordinal}`;
    // Names of interfaces have 15 characters at most.
    this.#wire = `bw${process.pid}${ordinal}`;
    // Of a range that nobody may use on a real network.
    const first = ((process.pid + ordinal) % 64) * 4;
    this.here = `192.0.2.${first + 1}`;
    this.there = `192.0.2.${first + 2}`;
  }

  /** Why there can be none here, in a sentence; undefined where there can. */
  static whyNot(): string | undefined {
    if (process.platform !== 'linux') return 'a network of its own needs Linux';
    if (process.getuid?.() !== 0) return 'a network of its own needs root';
    for (const program of ['ip', 'tc'])
      if (spawnSync(program, ['-V']).error !== undefined) return `a network of its own needs ${program}, which iproute2 has`;
    try {
      SeparateNetwork.open().close();
      return undefined;
    } catch (error) {
      return `no network can be made here: ${(error as Error).message}`;
    }
  }

  static open(): SeparateNetwork {
    const network = new SeparateNetwork();
    const name = network.#name;
    const { near, far } = network.#ends;
    // A test run that is ended in the middle leaves none behind.
    process.once('exit', network.#onExit);
    try {
      run('ip', 'netns', 'add', name);
      run('ip', 'link', 'add', near, 'type', 'veth', 'peer', 'name', far);
      run('ip', 'link', 'set', far, 'netns', name);
      run('ip', 'address', 'add', `${network.here}/30`, 'dev', near);
      run('ip', 'link', 'set', near, 'up');
      run('ip', '-n', name, 'address', 'add', `${network.there}/30`, 'dev', far);
      for (const link of ['lo', far]) run('ip', '-n', name, 'link', 'set', link, 'up');
    } catch (error) {
      network.close();
      throw error;
    }
    return network;
  }

  /** What starts a program over there, in front of it. */
  get runner(): readonly string[] {
    return ['ip', 'netns', 'exec', this.#name];
  }

  /** Makes the wire a bad one, both ways. @returns how, in words */
  impair(): string {
    const { near, far } = this.#ends;
    const both = (how: readonly string[]) => {
      run('tc', 'qdisc', 'replace', 'dev', near, 'root', ...how);
      run('tc', '-n', this.#name, 'qdisc', 'replace', 'dev', far, 'root', ...how);
      return how.join(' ');
    };
    try {
      return both(BAD);
    } catch (error) {
      return `${both(NARROW)}, as this kernel cannot do better (${(error as Error).message})`;
    }
  }

  /** Packets that the wire has lost since it is a bad one. */
  get lost(): number {
    const { near, far } = this.#ends;
    const said = [run('tc', '-s', 'qdisc', 'show', 'dev', near), run('tc', '-n', this.#name, '-s', 'qdisc', 'show', 'dev', far)];
    return said.reduce((sum, text) => sum + Number(/dropped (\d+)/.exec(text)?.[1] ?? 0), 0);
  }

  /** Takes it away. Who runs over there has no network any more. */
  close(): void {
    process.off('exit', this.#onExit);
    // With one end of the wire the other one goes.
    spawnSync('ip', ['link', 'delete', this.#ends.near]);
    spawnSync('ip', ['netns', 'delete', this.#name]);
  }

  readonly #onExit = () => this.close();

  get #ends(): { near: string; far: string } {
    return { near: `${this.#wire}h`, far: `${this.#wire}t` };
  }
}

function run(program: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr.trim()}`);
  return stdout;
}
