/**
 * Pages between pages, workers and threads over message ports, in browsers and in Node.
 *
 * @packageDocumentation
 */
export type { Clock } from '../clock.ts';
export { TransferError, type TransferErrorCode } from '../errors.ts';
export type { LinkOptions } from '../link/link-options.ts';
export { MessagePortTransport, type MessagePortTransportOptions } from './message-port-transport.ts';
export type { PortLike } from './port-wire.ts';
