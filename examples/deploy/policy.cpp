// A policy in C++, with onnxruntime alone:
//   g++ -std=c++17 policy.cpp -I$ORT/include -L$ORT/lib -lonnxruntime -o policy
//   echo "0.02 -0.01 0.03 0.04" | ./policy policy.onnx
#include <onnxruntime_cxx_api.h>

#include <iostream>
#include <vector>

int main(int count, char** arguments) try {
  if (count != 2) return std::cerr << "usage: policy POLICY.onnx < observations\n", 2;
  Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "policy");
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1);
  Ort::Session session(env, arguments[1], options);
  std::vector<int64_t> shape = session.GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape();
  shape[0] = 1;  // the size of the batch is free
  int64_t size = 1;
  for (int64_t n : shape) size *= n;

  const char* inputs[] = {"observation"};
  const char* outputs[] = {"action", "mu", "sigma"};
  auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::vector<float> observation(size);
  std::cout.precision(9);
  while (true) {
    for (float& x : observation)
      if (!(std::cin >> x)) return 0;
    auto tensor = Ort::Value::CreateTensor<float>(
        memory, observation.data(), size, shape.data(), shape.size());
    auto found = session.Run({}, inputs, &tensor, 1, outputs, 3);
    std::cout << found[0].GetTensorData<int32_t>()[0];  // continuous actions: float, one each
    size_t actions = found[1].GetTensorTypeAndShapeInfo().GetElementCount();
    for (size_t i = 0; i < 2 * actions; i++)
      std::cout << ' ' << found[1 + i / actions].GetTensorData<float>()[i % actions];
    std::cout << '\n';
  }
} catch (const Ort::Exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
