import { apiDocument } from '../../api/document/docs-api.ts';
import { jsonText } from '../print/json-text.ts';

/** `openapi`: the document of the API, as the service serves it at /api/openapi.json. @returns what to print */
export function openapiCommand(): string {
  return jsonText(apiDocument());
}
