/** The parts of an OpenAPI 3.1 document that are written here, and that the API page reads. */
export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly tags: readonly Tag[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
}

/** A service. */
export interface Tag {
  readonly name: string;
  readonly description?: string;
  /** Methods that HTTP cannot carry. */
  readonly "x-grpc-only": readonly GrpcMethod[];
}

export interface GrpcMethod {
  readonly method: string;
  readonly description?: string;
  readonly request: string;
  readonly response: string;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content; readonly description?: string };
  readonly responses: Readonly<Record<string, Response | Reference>>;
  /** The full name of the method, as gRPC calls it. */
  readonly "x-grpc-method": string;
  /** A call from the command line. */
  readonly "x-curl": string;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly required: boolean;
  readonly description?: string;
  readonly schema: Schema;
  readonly style?: "deepObject";
  readonly explode?: boolean;
  /** May contain slashes, which need not be encoded. */
  readonly "x-many-segments"?: true;
}

export type Content = Readonly<Record<string, { readonly schema: Schema }>>;

export interface Response {
  readonly description: string;
  readonly content: Content;
}

export interface Reference {
  readonly $ref: string;
}

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly (string | number)[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly contentEncoding?: string;
  readonly contentMediaType?: string;
}
