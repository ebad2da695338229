import { type AddressInfo, createServer } from 'node:net';

/**
 * Ports of this machine on which nobody listens, all different. Somebody may take one meanwhile: try again with others then.
 *
 * @param most the highest port that may come; a node of a Redis cluster also listens 10,000 above its own
 */
export async function freePorts(count: number, most = 65_535): Promise<number[]> {
  const ports: number[] = [];
  const taken: ReturnType<typeof createServer>[] = [];
  try {
    while (ports.length < count) {
      const server = createServer();
      taken.push(server);
      // Above `most`, ports that the system would not have chosen by itself are tried.
      const wanted = most < 65_535 ? 10_000 + Math.floor(Math.random() * (most - 10_000)) : 0;
      const port = await new Promise<number | undefined>((resolve) => {
        server.once('error', () => resolve(undefined));
        server.listen(wanted, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
      });
      if (port !== undefined) ports.push(port);
    }
  } finally {
    await Promise.all(taken.map((server) => new Promise<void>((resolve) => void server.close(() => resolve()))));
  }
  return ports;
}
