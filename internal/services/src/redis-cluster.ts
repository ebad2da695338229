import { freePorts } from './free-ports.ts';
import { RedisProcess } from './redis-process.ts';
import { until } from './until.ts';

const NUM_MASTERS = 3;
const NUM_SLOTS = 16_384;
const SETTINGS = [
  ...['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000'],
  ...['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'],
  ...['--cluster-replica-validity-factor', '0'],
];

/** Three masters and a replica of each, as six processes. */
export class RedisCluster {
  /** Master `i` first, its replica at `i + 3`. After a failover the roles are others. */
  readonly nodes: readonly RedisProcess[];

  private constructor(nodes: readonly RedisProcess[]) {
    this.nodes = nodes;
  }

  /** Starts one and waits until all nodes agree that it is whole and every replica has its data. */
  static async start(): Promise<RedisCluster> {
    // The bus of a node listens 10,000 above its port: on none that is another node's, or that the system gives to connections (from 32,768 on).
    const ports = await freePorts(2 * NUM_MASTERS, 20_000);
    const started = await Promise.allSettled(ports.map((port) => RedisProcess.start({ port, settings: SETTINGS })));
    const nodes = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    const cluster = new RedisCluster(nodes);
    try {
      for (const each of started) if (each.status === 'rejected') throw each.reason;
      await cluster.#join();
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  get rootNodes(): { url: string }[] {
    return this.nodes.map(({ url }) => ({ url }));
  }

  /** The master that has a key, as node `asked` sees it. */
  async masterOf(key: string, asked = this.nodes[0]): Promise<RedisProcess> {
    const slot = Number(await asked.command('CLUSTER', 'KEYSLOT', key));
    for (const line of (await asked.command('CLUSTER', 'NODES')).split('\n')) {
      const [, address = '', flags = '', , , , , , ...ranges] = line.split(' ');
      const has = ranges.some((range) => {
        const [first, last = first] = range.split('-').map(Number);
        return first <= slot && slot <= last;
      });
      const node = this.nodes.find(({ port }) => address.includes(`:${port}@`));
      if (has && flags.includes('master') && !flags.includes('fail') && node !== undefined) return node;
    }
    throw new Error(`No master has slot ${slot} now.`);
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  async #join(): Promise<void> {
    const masters = this.nodes.slice(0, NUM_MASTERS);
    for (const [i, master] of masters.entries()) {
      const first = Math.floor((i * NUM_SLOTS) / NUM_MASTERS);
      const last = Math.floor(((i + 1) * NUM_SLOTS) / NUM_MASTERS) - 1;
      await master.command('CLUSTER', 'ADDSLOTSRANGE', String(first), String(last));
      await master.command('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1));
    }
    const [first, ...others] = this.nodes;
    for (const other of others) await first.command('CLUSTER', 'MEET', '127.0.0.1', String(other.port));
    for (const node of this.nodes) {
      await until('the nodes know each other', async () => (await knownNodes(node)) === this.nodes.length);
    }
    for (const [i, master] of masters.entries()) {
      const id = await master.command('CLUSTER', 'MYID');
      const replica = this.nodes[i + NUM_MASTERS];
      await until('the replica has its master', async () => (await replica.command('CLUSTER', 'REPLICATE', id)) === 'OK');
      await until('the replica is in step', async () =>
        /master_link_status:up/.test(await replica.command('INFO', 'replication')),
      );
    }
    for (const node of this.nodes) {
      await until('the cluster is whole', async () => {
        const info = await node.command('CLUSTER', 'INFO');
        const nodes = await node.command('CLUSTER', 'NODES');
        return /cluster_state:ok/.test(info) && (nodes.match(/ (?:myself,)?slave /g) ?? []).length === NUM_MASTERS;
      });
    }
  }
}

const knownNodes = async (node: RedisProcess) =>
  (await node.command('CLUSTER', 'NODES')).split('\n').filter((line) => line !== '' && !/handshake|noaddr/.test(line)).length;
