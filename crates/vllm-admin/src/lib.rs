//! Discovery and administration of vLLM engines behind NVIDIA Dynamo, with evidence that means something.
