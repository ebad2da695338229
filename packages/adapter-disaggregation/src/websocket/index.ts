/**
 * Pages over WebSockets, between machines and from browsers.
 *
 * @packageDocumentation
 */
export type { Clock } from '../clock.ts';
export { TransferError, type TransferErrorCode } from '../errors.ts';
export type { LinkOptions } from '../link/link-options.ts';
export type { WebSocketEvent, WebSocketLike } from './websocket-like.ts';
export {
  type WebSocketConstructor,
  type WebSocketTls,
  WebSocketTransport,
  type WebSocketTransportOptions,
} from './websocket-transport.ts';
