export { ZmqEventPublisher, type ZmqEventPublisherOptions } from './zmq-event-publisher.ts';
