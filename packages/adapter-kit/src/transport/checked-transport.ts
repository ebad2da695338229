import { AdapterError } from '../errors.ts';
import { checkSpecVersion } from '../plugin.ts';
import { MAX_REQUEST_BYTES } from './frame.ts';
import type {
  PageConnection,
  PageTransport,
  PageTransportLimits,
  StreamId,
  TransferMessage,
  TransferPages,
} from './page-transport.ts';

const utf8 = new TextEncoder();

/**
 * A transport whose arguments are checked, so that no transport has to: what users call transports through. Calls reject with
 * {AdapterError} `invalid-stream` or `message-too-large` before anything is sent.
 *
 * @throws {AdapterError} `plugin-spec-version` on a transport of another version
 */
export function checkedTransport(transport: PageTransport): PageTransport {
  checkSpecVersion(transport);
  const { limits } = transport;
  return {
    specVersion: transport.specVersion,
    name: transport.name,
    supports: transport.supports,
    limits,
    async listen(address, options) {
      const listener = await transport.listen(address, options);
      return {
        address: listener.address,
        accept: async (accepting) => checkedConnection(await listener.accept(accepting), limits),
        close: () => listener.close(),
      };
    },
    connect: async (address, options) => checkedConnection(await transport.connect(address, options), limits),
    close: () => transport.close(),
  };
}

function checkedConnection(connection: PageConnection, limits: PageTransportLimits): PageConnection {
  return {
    async send(message: TransferMessage, options) {
      checkStream(message.stream);
      checkSize('a message', message.body, limits.maxMessageBytes);
      return connection.send(message, options);
    },
    async sendPages(pages: TransferPages, options) {
      checkStream(pages.stream);
      checkNumber('firstPage', pages.firstPage);
      checkSize('pages', pages.bytes, limits.maxPagesBytes);
      return connection.sendPages(pages, options);
    },
    receive: (options) => connection.receive(options),
    async abort(request, generation, reason) {
      checkStream({ request, generation, group: 0 });
      checkSize('the reason', utf8.encode(reason), limits.maxMessageBytes);
      return connection.abort(request, generation, reason);
    },
    retire(request, generation) {
      checkStream({ request, generation, group: 0 });
      connection.retire(request, generation);
    },
    get bytesInFlight() {
      return connection.bytesInFlight;
    },
    close: () => connection.close(),
  };
}

function checkStream({ request, generation, group }: StreamId): void {
  const bytes = typeof request === 'string' ? utf8.encode(request).length : 0;
  if (bytes < 1 || bytes > MAX_REQUEST_BYTES)
    throw new AdapterError(
      'invalid-stream',
      `the request's name ${JSON.stringify(request)} takes ${bytes} bytes; 1 to ${MAX_REQUEST_BYTES}`,
    );
  checkNumber('generation', generation);
  checkNumber('group', group);
}

function checkNumber(what: string, value: number): void {
  if (Number.isInteger(value) && value >= 0 && value < 2 ** 32) return;
  throw new AdapterError('invalid-stream', `${what} is ${value}; it must be a whole number from 0 on, below 2^32`);
}

function checkSize(what: string, bytes: Uint8Array, most: number): void {
  if (bytes.length <= most) return;
  throw new AdapterError(
    'message-too-large',
    `${what} of ${bytes.length} bytes; ${most} is the most at a time, so send more often`,
  );
}
