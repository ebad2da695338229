import { ProtobufWriter } from './protobuf-writer.ts';

/** Element types by the numbers of `TensorProto.DataType`. */
const DATA_TYPES = { float32: 1, int64: 7, bool: 9, float16: 10 } as const;

/** `AttributeProto.AttributeType`. */
const ATTRIBUTE = { float: 1, int: 2, ints: 7 } as const;

const IR_VERSION = 8;
const OPSET = 17;

export type ElementType = keyof typeof DATA_TYPES;
type Attributes = Readonly<Record<string, number | readonly number[]>>;

/** Puts a graph of ONNX operators together and writes it as the bytes of a model file. Field numbers are those of ONNX's `onnx.proto`. */
export class GraphBuilder {
  readonly #nodes: ((node: ProtobufWriter) => void)[] = [];
  readonly #initializers: ((tensor: ProtobufWriter) => void)[] = [];
  readonly #inputs: ((value: ProtobufWriter) => void)[] = [];
  readonly #outputs: ((value: ProtobufWriter) => void)[] = [];
  #numNames = 0;

  /** Dimensions are numbers, or names where they change from run to run. */
  input(name: string, type: ElementType, shape: readonly (number | string)[]): string {
    this.#inputs.push(valueInfo(name, type, shape));
    return name;
  }

  output(name: string, type: ElementType, shape: readonly (number | string)[]): void {
    this.#outputs.push(valueInfo(name, type, shape));
  }

  floats(dims: readonly number[], values: ArrayLike<number>): string {
    return this.#constant('float32', dims, new Uint8Array(Float32Array.from(values).buffer));
  }

  ints(dims: readonly number[], values: readonly number[]): string {
    return this.#constant('int64', dims, new Uint8Array(BigInt64Array.from(values.map(BigInt)).buffer));
  }

  /** Adds an operator with one output. @returns the name of that output */
  node(operator: string, inputs: readonly string[], attributes: Attributes = {}, output = this.#name(operator)): string {
    this.#nodes.push((node) => {
      for (const input of inputs) node.text(1, input);
      node.text(2, output).text(3, output).text(4, operator);
      for (const [name, value] of Object.entries(attributes)) node.message(5, attribute(name, value));
    });
    return output;
  }

  cast(input: string, type: ElementType, output?: string): string {
    return this.node('Cast', [input], { to: DATA_TYPES[type] }, output);
  }

  /** The bytes of a `ModelProto`. */
  finish(): Uint8Array {
    return new ProtobufWriter()
      .varint(1, IR_VERSION)
      .text(2, 'bufferwise tests')
      .message(7, (graph) => {
        for (const node of this.#nodes) graph.message(1, node);
        graph.text(2, 'decoder');
        for (const tensor of this.#initializers) graph.message(5, tensor);
        for (const value of this.#inputs) graph.message(11, value);
        for (const value of this.#outputs) graph.message(12, value);
      })
      .message(8, (opset) => opset.text(1, '').varint(2, OPSET))
      .finish();
  }

  #constant(type: ElementType, dims: readonly number[], raw: Uint8Array): string {
    const name = this.#name('constant');
    this.#initializers.push((tensor) => {
      for (const dim of dims) tensor.varint(1, dim);
      tensor.varint(2, DATA_TYPES[type]).text(8, name).bytes(9, raw);
    });
    return name;
  }

  #name(kind: string): string {
    return `${kind}_${this.#numNames++}`;
  }
}

function valueInfo(name: string, type: ElementType, shape: readonly (number | string)[]) {
  return (value: ProtobufWriter) => {
    value.text(1, name).message(2, (typeProto) => {
      typeProto.message(1, (tensor) => {
        tensor.varint(1, DATA_TYPES[type]).message(2, (dims) => {
          for (const dim of shape)
            dims.message(1, (field) => (typeof dim === 'number' ? field.varint(1, dim) : field.text(2, dim)));
        });
      });
    });
  };
}

function attribute(name: string, value: number | readonly number[]) {
  return (field: ProtobufWriter) => {
    field.text(1, name);
    if (typeof value !== 'number') {
      for (const element of value) field.varint(8, element);
      field.varint(20, ATTRIBUTE.ints);
    } else if (Number.isInteger(value)) field.varint(3, value).varint(20, ATTRIBUTE.int);
    else field.float(2, value).varint(20, ATTRIBUTE.float);
  };
}
