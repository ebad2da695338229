import type { PageConnection, PageTransport } from '@bufferwise/adapter-kit';

const CONNECT_MS = 5_000;

/** Connections to workers, one an address, made when the first prompt goes there and kept until it ends. They are the transport's to close. */
export class PageLinks {
  readonly #transport: PageTransport;
  readonly #links = new Map<string, Promise<PageConnection>>();

  constructor(transport: PageTransport) {
    this.#transport = transport;
  }

  /** Rejects with {AdapterError} where nobody listens, or nobody who has the key. */
  to(address: string): Promise<PageConnection> {
    const known = this.#links.get(address);
    if (known !== undefined) return known;
    const forget = () => {
      if (this.#links.get(address) === link) this.#links.delete(address);
    };
    const link: Promise<PageConnection> = this.#transport
      .connect(address, { signal: AbortSignal.timeout(CONNECT_MS) })
      .then((connection) => telling(connection, forget));
    this.#links.set(address, link);
    link.catch(forget);
    return link;
  }
}

/** A connection that tells when it has ended, which whoever hears it learns first. */
function telling(connection: PageConnection, ended: () => void): PageConnection {
  return {
    send: (message, options) => connection.send(message, options),
    sendPages: (pages, options) => connection.sendPages(pages, options),
    async receive(options) {
      try {
        return await connection.receive(options);
      } catch (error) {
        ended();
        throw error;
      }
    },
    abort: (request, generation, reason) => connection.abort(request, generation, reason),
    retire: (request, generation) => connection.retire(request, generation),
    get bytesInFlight() {
      return connection.bytesInFlight;
    },
    close: () => connection.close(),
  };
}
