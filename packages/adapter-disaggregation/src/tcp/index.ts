/**
 * Pages between machines over TCP, for Node.
 *
 * @packageDocumentation
 */
export type { Clock } from '../clock.ts';
export { TransferError, type TransferErrorCode } from '../errors.ts';
export type { LinkOptions } from '../link/link-options.ts';
export { TcpTransport, type TcpTransportOptions } from './tcp-transport.ts';
